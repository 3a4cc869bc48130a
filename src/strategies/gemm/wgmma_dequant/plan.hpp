#pragma once
/// The launches of the products with packed NVFP4 weights and their work.
#include <optional>

#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/wgmma_dequant/config.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

/// The bytes that are packed of one expert.
struct ExpertBytes {
  u32 k_blocks = 0;
  u32 output_groups = 0;
  std::int64_t blocks = 0;
  std::int64_t factors = 0;  ///< fast only
};
[[nodiscard]] ExpertBytes expert_bytes(const Config& config, std::int64_t n, std::int64_t k);

enum PackedPiece : std::size_t { blocks_piece, row_factors_piece };
/// Adds to `call` what packing makes of the weights once, and the call that does it.
void add_packing(const ProductProblem& problem, const Config& config, PlannedCall& call);

/// How a call makes its tokens ready for the product.
enum class Preparation : std::uint8_t {
  none,
  quantize,    ///< fast: to e4m3, with a factor for each token
  dequantize,  ///< NVFP4 to 16 bits with zeros beyond K
  pad,         ///< 16 bits to rows of whole blocks with zeros beyond K
};
[[nodiscard]] Preparation preparation(const Config& config, Format tokens, std::int64_t k);

struct PreparedTokens {
  RowsInWorkspace rows;
  std::size_t factors_piece = 0;  ///< fast only
  std::size_t factors_offset = 0;
};
/// Adds the launch that prepares tokens, where there is one, and its pieces of the workspace.
std::optional<PreparedTokens> add_preparation(const ProductProblem& problem, const Config& config, PlannedCall& call);

/// `config` is feasible. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors);

[[nodiscard]] WorkModel work(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::gemm::wgmma_dequant
