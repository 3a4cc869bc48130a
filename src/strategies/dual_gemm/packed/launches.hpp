#pragma once
/// What the host needs to pack weights, prepare tokens and launch the product: sizes, tensor maps, parameters. Pure
/// functions of addresses and shapes.
#include <cstdint>

#include "machine/tensor_map.hpp"
#include "strategies/dual_gemm/packed/config.hpp"
#include "strategies/dual_gemm/packed/device/fold_tokens.hpp"
#include "strategies/dual_gemm/packed/device/matrix.hpp"
#include "strategies/dual_gemm/packed/device/prepare_tokens.hpp"
#include "strategies/dual_gemm/packed/device/token_format.hpp"
#include "strategies/dual_gemm/packed/params.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies::dual_gemm::packed {

struct Extents {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// An operand as preparing kernels read it: NVFP4, or rows of 16 bits in `values`.
Matrix matrix_of(const Tensor& operand);
TokenFormat token_format(Format format);

Numerics numerics_of(thresher::Numerics numerics);

/// Bytes of packed weights: the blocks and, for fast, the rows' factors behind them.
std::size_t packed_bytes(Numerics numerics, std::int64_t n, std::int64_t k);
std::size_t factors_offset(std::int64_t n, std::int64_t k);
std::uint32_t weight_k_blocks(Numerics numerics, std::int64_t k);
std::uint32_t packing_blocks(Numerics numerics, std::int64_t n, std::int64_t k);
/// Of row_factors_kernel.
std::uint32_t row_factor_blocks(std::int64_t n);

/// Tokens as `prepare` leaves them: rows without gaps, zeros beyond k, then (fast) a float for each.
struct PreparedTokens {
  std::int64_t row_bytes = 0;
  std::int64_t factors_offset = 0;
  std::int64_t bytes = 0;
};
PreparedTokens prepared_tokens(Numerics numerics, std::int64_t m, std::int64_t k);

/// Without `out` and `factors`. The grid has one block a row for fast, else of 128 threads.
FoldTokensParams fold_params(const Tensor& a);
WidenTokensParams widen_params(const Tensor& a);
std::uint32_t widen_blocks(const Tensor& a);

/// Of tokens at `address`, rows `row_bytes` apart.
machine::TensorMapDescription tokens_map(const Config& config, const Extents& extents, std::uint64_t address,
                                         std::int64_t row_bytes);
/// What a call has to do to its tokens before they can be multiplied.
enum class Preparation : std::uint8_t { none, fold, widen, pad };
Preparation preparation_of(const Config& config, Format tokens, std::int64_t k);

/// Of 16-bit tokens as the caller has them, zeros beyond k.
machine::TensorMapDescription ragged_tokens_map(const Config& config, const Extents& extents, std::uint64_t address,
                                                std::int64_t row_bytes);
/// Params::ragged_slot of such tokens.
std::uint32_t ragged_slot(const Config& config, std::int64_t k);

/// Everything but addresses, tensor maps and the ragged slot. `c_row_stride` counts elements.
Params scalars(const Config& config, const Extents& extents, std::int64_t c_row_stride, const Activation& activation);
std::uint32_t blocks(const Config& config, const Params& params);

}  // namespace thresher::strategies::dual_gemm::packed
