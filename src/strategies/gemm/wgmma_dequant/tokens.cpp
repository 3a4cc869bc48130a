#include "core/integers.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma_dequant/device/dequantize_tokens.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/plan.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

TokenFormat token_format(Format format) {
  return format == Format::nvfp4 ? TokenFormat::nvfp4 : format == Format::bf16 ? TokenFormat::bf16 : TokenFormat::fp16;
}

/// The most tokens that a call brings.
std::int64_t max_tokens(const ProductProblem& problem) {
  return problem.layout == ProductRows::gathered ? problem.tokens
         : problem.layout == ProductRows::masked ? problem.experts * problem.rows
                                                 : problem.rows;
}

/// Whether rows can be read as WholeNvfp4Row and WholeRow do. The operation aligned their first value to 16 bytes.
bool are_whole(const QuantizeTokensParams& params, Format format) {
  const bool whole_words = params.tokens.scale_columns % 4 == 0 && params.tokens.row_bytes % 8 == 0;
  const bool whole_scales = format != Format::nvfp4 || params.tokens.scales.address % 4 == 0;
  return whole_words && whole_scales;
}

KernelLaunch quantizing(Format format, const PreparedTokens& prepared) {
  KernelLaunch launch;
  launch.title = "quantize the tokens";
  launch.expression = quantize_tokens_kernel_name(token_format(format));
  launch.block.x = quantize_threads;
  launch.shared_bytes = quantize_shared_bytes;
  launch.accesses.push_back({Access::Memory::workspace, prepared.factors_piece, Access::Use::writes});
  launch.bind = [format, prepared](const CallTensors& call, LaunchArguments& out) {
    QuantizeTokensParams params{};
    params.tokens = token_matrix(tokens_of(call));
    params.out = {device_address(call.workspace) + prepared.rows.offset};
    params.factors = {device_address(call.workspace) + prepared.factors_offset};
    params.groups = narrow(prepared.rows.row_bytes / 16);
    params.whole = are_whole(params, format) ? 1 : 0;
    out.set(params);
    out.grid.x = params.tokens.rows;
    return true;
  };
  return launch;
}

std::uint32_t dequantize_blocks(const DequantizeTokensParams& params) {
  constexpr std::int64_t block_elements = std::int64_t{8} * dequantize_parts * dequantize_threads;
  return narrow(ceil_div(std::int64_t{params.tokens.rows} * params.row_blocks * block_k, block_elements));
}

/// NVFP4 or 16-bit tokens to 16 bits.
KernelLaunch dequantizing(bool pads, const PreparedTokens& prepared) {
  KernelLaunch launch;
  launch.title = pads ? "pad the tokens" : "dequantize the tokens";
  launch.expression = pads ? pad_tokens_kernel_name() : dequantize_tokens_kernel_name();
  launch.block.x = pads ? pad_threads : dequantize_threads;
  launch.expected.uses_shared_memory = false;
  launch.bind = [pads, prepared](const CallTensors& call, LaunchArguments& out) {
    DequantizeTokensParams params{};
    params.tokens = token_matrix(tokens_of(call));
    params.out = {device_address(call.workspace) + prepared.rows.offset};
    params.row_blocks = narrow(prepared.rows.row_bytes / token_row_bytes);
    out.set(params);
    out.grid.x = pads ? pad_blocks(params.row_blocks) * params.tokens.rows : dequantize_blocks(params);
    return true;
  };
  return launch;
}

}  // namespace

/// The grouped kernel's maps bring zeros beyond K themselves. In the dense kernel rows of 16-bit tokens that are no
/// whole blocks begin anywhere in a line of 128 bytes, so that TMA reads one more for each of them: measured, that
/// costs more than copying them together once, but for the fewest.
Preparation preparation(const Config& config, Format tokens, std::int64_t k) {
  constexpr int few_tokens = 8;
  if (config.numerics == Numerics::fast) {
    return Preparation::quantize;
  }
  if (tokens == Format::nvfp4) {
    return Preparation::dequantize;
  }
  return !config.grouped && k % block_k != 0 && config.block_tokens > few_tokens ? Preparation::pad : Preparation::none;
}

std::optional<PreparedTokens> add_preparation(const ProductProblem& problem, const Config& config, PlannedCall& call) {
  const Preparation kind = preparation(config, problem.a, problem.k);
  if (kind == Preparation::none) {
    return std::nullopt;
  }
  const bool quantizes = kind == Preparation::quantize;
  const std::int64_t tokens = max_tokens(problem);
  PreparedTokens prepared;
  prepared.rows.row_bytes = ceil_div(problem.k, std::int64_t{weight_block_k(config.numerics)}) * token_row_bytes;
  prepared.rows.piece =
      add_piece(call, "prepared tokens", static_cast<std::size_t>(size_product(tokens, prepared.rows.row_bytes)));
  prepared.rows.offset = call.workspace[prepared.rows.piece].offset;
  if (quantizes) {
    prepared.factors_piece = add_piece(call, "token factors", static_cast<std::size_t>(tokens) * sizeof(float));
    prepared.factors_offset = call.workspace[prepared.factors_piece].offset;
  }
  KernelLaunch launch = quantizes ? quantizing(problem.a, prepared) : dequantizing(kind == Preparation::pad, prepared);
  launch.program = preparation_program();
  launch.dependent = config.dependent_launch;
  add_reads(launch.accesses, tokens_index, problem.a, Access::Use::depends_on_previous);
  launch.accesses.push_back({Access::Memory::workspace, prepared.rows.piece, Access::Use::writes});
  call.steps.emplace_back(std::move(launch));
  return prepared;
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
