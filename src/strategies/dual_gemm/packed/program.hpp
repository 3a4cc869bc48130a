#pragma once
/// The device code of the packed NVFP4 dual GEMM, and the names of its kernels.
#include <string>
#include <vector>

#include "strategies/device_program.hpp"
#include "strategies/dual_gemm/packed/config.hpp"
#include "strategies/dual_gemm/packed/device/token_format.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// Packing, and tokens to what the kernels read.
DeviceProgram preparation_program();
std::string pack_kernel_name();
/// Before pack_fast_kernel, which reads its results.
std::string row_factors_kernel_name();
std::string pack_fast_kernel_name();
std::string fold_tokens_kernel_name(TokenFormat format);
std::string widen_tokens_kernel_name();
std::string pad_tokens_kernel_name();

const KnobTable<Config>& knob_table();

/// One configuration.
DeviceProgram program(const Config& config);
std::string kernel_name(const Config& config);

/// Bytes of dynamic shared memory that a launch of `config` needs.
int shared_bytes(const Config& config);
int launch_threads(const Config& config);

}  // namespace thresher::strategies::dual_gemm::packed
