#pragma once
/// The kernels of the products with packed NVFP4 weights: their knobs, names and programs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/gemm/wgmma_dequant/config.hpp"
#include "strategies/gemm/wgmma_dequant/device/pack.hpp"
#include "strategies/gemm/wgmma_dequant/device/quantize_tokens.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

/// Each of the two kernels has its own choices; both tables name every member of Config.
const KnobTable<Config>& dense_knob_table();
const KnobTable<Config>& grouped_knob_table();
inline const KnobTable<Config>& knob_table(const Config& config) {
  return config.grouped ? grouped_knob_table() : dense_knob_table();
}

/// One configuration.
DeviceProgram program(const Config& config);
std::string kernel_expression(const Config& config);

/// Every kernel that packs weights or prepares tokens.
DeviceProgram preparation_program();
std::string pack_kernel_name(Packing packing);
std::string pack_experts_kernel_name(Packing packing, int matrices);
std::string quantize_tokens_kernel_name(TokenFormat format);
std::string dequantize_tokens_kernel_name();
std::string pad_tokens_kernel_name();

}  // namespace thresher::strategies::gemm::wgmma_dequant
