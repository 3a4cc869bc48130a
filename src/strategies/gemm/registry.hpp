#pragma once
/// Every strategy of the products.
#include <cstdint>
#include <initializer_list>

#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

/// A strategy is offered for some of these products.
enum class Product : std::uint8_t {
  dual_gemm,
  gemm,
  grouped,  ///< of one matrix and of two
};

/// Tells which product `problem` is.
[[nodiscard]] Product product_of(const ProductProblem& problem) noexcept;

/// Those that a kind of device offers for a product. The first is what a reader should know first, not what is always
/// chosen.
[[nodiscard]] Strategies<ProductProblem> strategies_of(Product product, DeviceKind kind);

/// Adds one behind the others, for the life of the process; `strategy` must live as long. Not while another thread asks
/// for strategies. Throws Error(invalid_argument) for a name that its kind of device already has for that product.
void register_strategy(const Strategy<ProductProblem>& strategy, std::initializer_list<Product> products);

/// Dense products of 16-bit operands on Hopper: each tile of tokens is loaded once and multiplied by gate and up side
/// by side.
const Strategy<ProductProblem>& interleaved_strategy();
/// The whole gate product, then the whole up product, one fused epilogue.
const Strategy<ProductProblem>& sequential_strategy();
/// As interleaved; two warpgroups alternate, one multiplies while the other finishes its tile.
const Strategy<ProductProblem>& pingpong_strategy();
/// 16-bit operands or FP8 on Hopper, of every layout of rows: weights are rows of the matrix instruction, tokens its
/// columns.
const Strategy<ProductProblem>& columns_strategy();
/// For many tokens: they are rows of the matrix instruction.
const Strategy<ProductProblem>& rows_strategy();
/// NVFP4 weights on Hopper, which are packed once and become the operand of wgmma in registers.
const Strategy<ProductProblem>& packed_strategy();
/// NVFP4 operands on Blackwell.
const Strategy<ProductProblem>& tcgen05_strategy();
/// Operands of 16 bits and of FP8 on Blackwell.
const Strategy<ProductProblem>& tcgen05_plain_strategy();
/// The fallback of the dual GEMM, and the baseline of tournaments: operands are converted to one format, the vendor's
/// library makes two products in float32, and a kernel applies the activation.
const Strategy<ProductProblem>& two_pass_strategy();
/// This CPU: block by block of the weights, two whole products (src/cpu/dual_gemm.hpp), or an expert for each thread
/// (src/cpu/grouped_gemm.hpp).
const Strategy<ProductProblem>& cpu_interleaved_strategy();
const Strategy<ProductProblem>& cpu_two_pass_strategy();
const Strategy<ProductProblem>& cpu_by_expert_strategy();

}  // namespace thresher::strategies::gemm
