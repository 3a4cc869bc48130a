#pragma once
/// The device code of the products of NVFP4 operands on tcgen05, the table of their knobs, and their configurations
/// that are compiled ahead.
#include <array>
#include <string>
#include <vector>

#include "strategies/device_program.hpp"
#include "strategies/gemm/tcgen05_block_scaled/config.hpp"
#include "strategies/host/compiled_in.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::gemm::tcgen05_block_scaled {

[[nodiscard]] const KnobTable<Config>& knob_table();

/// The product's one kernel.
[[nodiscard]] DeviceProgram program(const Config& config);
[[nodiscard]] std::string kernel_name(const Config& config);

/// The kernels ahead of it, for any architecture. `packing_program` has every kernel that packs weights, and for static
/// tiles the one that prepares tokens. `preparation_program` has the one that prepares the rows of groups.
[[nodiscard]] DeviceProgram packing_program(bool dense);
[[nodiscard]] std::string pack_kernel_name(bool dense, int matrices);
[[nodiscard]] DeviceProgram preparation_program(const Config& config);
[[nodiscard]] std::string prepare_kernel_name(const Config& config);

/// Between them every knob, for the emulator.
inline constexpr std::array small_config_list{
    Config{.dense = true,
           .output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2},
    Config{.dense = true, .output = Number::bf16, .blocks = 1, .block_tokens = 16, .stages = 3, .split_k = 2},
    Config{.dense = true, .output = Number::fp32, .blocks = 2, .block_tokens = 48, .stages = 2, .split_k = 2},
    Config{.dense = true,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2,
           .persistent = true},
    Config{
        .unsigned_scales = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 144, .stages = 2},
    Config{.blocks = 1, .block_tokens = 32, .stages = 2},
    Config{.output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .gathered = true,
           .blocks = 2,
           .block_tokens = 96,
           .token_step = 16,
           .stages = 3},
    Config{.matrices = 1, .bias = true, .row_weights = true, .blocks = 2, .block_tokens = 64, .stages = 2},
    Config{.output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .row_weights = true,
           .blocks = 2,
           .block_tokens = 160,
           .token_step = 32,
           .stages = 2,
           .dependent_launch = false},
    Config{.bias = true, .row_weights = true, .blocks = 2, .block_tokens = 32, .stages = 2, .split_k = 2},
    Config{.output = Number::fp32, .matrices = 1, .blocks = 1, .block_tokens = 16, .stages = 2, .split_k = 2},
};

/// The kernels that the build compiled for the CPU: packing, and preparation and products of the small
/// configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::gemm::tcgen05_block_scaled
