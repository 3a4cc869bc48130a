#pragma once
/// The device code of the products of plain operands on tcgen05, the table of their knobs, and small configurations.
#include <array>
#include <string>
#include <vector>

#include "strategies/device_program.hpp"
#include "strategies/gemm/tcgen05/config.hpp"
#include "strategies/host/compiled_in.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::gemm::tcgen05 {

[[nodiscard]] const KnobTable<Config>& knob_table();

/// One kernel.
[[nodiscard]] DeviceProgram program(const Config& config);
[[nodiscard]] std::string kernel_name(const Config& config);

/// Between them every knob, for the emulator.
inline constexpr std::array small_config_list{
    Config{.dense = true, .blocks = 2, .block_tokens = 48, .stages = 2},
    Config{.operand = Number::fp16,
           .dense = true,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 1,
           .block_tokens = 16,
           .stages = 3},
    Config{.operand = Number::fp16,
           .dense = true,
           .output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2,
           .persistent = true},
    Config{.dense = true, .output = Number::fp32, .blocks = 2, .block_tokens = 48, .stages = 2, .split_k = 2},
    Config{.operand = Number::fp16, .dense = true, .blocks = 1, .block_tokens = 16, .stages = 2, .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .dense = true,
           .blocks = 2,
           .block_tokens = 48,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::tensor,
           .dense = true,
           .output = Number::fp16,
           .blocks = 1,
           .block_tokens = 32,
           .stages = 2,
           .persistent = true},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::tensor,
           .dense = true,
           .output = Number::fp32,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2,
           .split_k = 2},
    Config{.blocks = 1, .block_tokens = 32, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .gathered = true,
           .blocks = 2,
           .block_tokens = 96,
           .stages = 3},
    Config{.matrices = 1, .bias = true, .row_weights = true, .blocks = 2, .block_tokens = 64, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .row_weights = true,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2,
           .dependent_launch = false},
    Config{.matrices = 1, .blocks = 1, .block_tokens = 160, .token_step = 32, .stages = 2},
    Config{.row_weights = true, .gathered = true, .blocks = 2, .block_tokens = 32, .stages = 2, .split_k = 2},
    Config{.output = Number::fp32, .bias = true, .blocks = 1, .block_tokens = 16, .stages = 3, .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::tensor,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .gathered = true,
           .blocks = 2,
           .block_tokens = 64,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::tensor,
           .output = Number::fp32,
           .matrices = 1,
           .blocks = 1,
           .block_tokens = 16,
           .stages = 2,
           .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::row,
           .row_weights = true,
           .blocks = 1,
           .block_tokens = 96,
           .stages = 2},
};

/// The kernels that the build compiled for the CPU: the products of the small configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::gemm::tcgen05
