#pragma once
/// The kernels of the strategy packed: their knobs, names, programs and launches.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/wgmma_dequant/config.hpp"
#include "strategies/gemm/wgmma_dequant/device/pack.hpp"
#include "strategies/gemm/wgmma_dequant/device/quantize_tokens.hpp"
#include "strategies/knob_table.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

const KnobTable<Config>& knob_table();

/// The product's one kernel.
DeviceProgram program(const Config& config);
std::string kernel_expression(const Config& config);

/// Every kernel that packs weights or prepares tokens.
DeviceProgram preparation_program();
std::string pack_kernel_name(Packing packing);
std::string pack_experts_kernel_name(Packing packing, int matrices);
std::string quantize_tokens_kernel_name(TokenFormat format);
std::string dequantize_tokens_kernel_name();
std::string pad_tokens_kernel_name();

/// How a call makes its tokens ready for the product.
enum class Preparation : std::uint8_t {
  none,
  quantize,    ///< fast: to e4m3, with a factor for each token
  dequantize,  ///< NVFP4 to 16 bits with zeros beyond K
  pad,         ///< 16 bits to rows of whole blocks with zeros beyond K
};
[[nodiscard]] Preparation preparation(const Config& config, Format tokens, std::int64_t k);

/// `config` is feasible. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors);

}  // namespace thresher::strategies::gemm::wgmma_dequant
