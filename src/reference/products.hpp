#pragma once
/// The products of a dual GEMM or of one matrix over a region, blocked and threaded.
#include <cstdint>
#include <functional>
#include <span>

#include "reference/region.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

/// How a sum over K is carried; K always ascends from a sum of 0.
enum class Accumulation : std::uint8_t {
  float64,
  float32,  ///< one product at a time, rounded to nearest: an ordinary processor
  /// 16 products at a time added exactly, the new sum cut off to float32's 24 bits: the matrix unit of a GPU
  float32_truncated,
  /// 32 products at a time as the matrix unit for 8-bit operands on Hopper adds them (aligned_product.hpp), to 14 bits
  float14_truncated,
  /// The same for 128 of K at a time, whose sums are added in float32: kernels for FP8 on Hopper in numerics exact
  float14_promoted,
};

/// Some rows of a matrix that check_matrix accepts, in any order.
struct SomeRows {
  const Tensor& matrix;
  std::span<const std::int64_t> rows;
};

/// Takes gate and up of output [row, column], which count the rows of A and those of B; called once for each, from
/// several threads at once. Where there is one matrix, up is 0.
using OutputSink = std::function<void(std::size_t row, std::size_t column, double gate, double up)>;

/// Global scales multiply the finished sums, in the precision of the sums. With float64 this is bit for bit the
/// definition: products of two elements are exact there, so fusing multiply and add changes nothing. (Those of elements
/// with float32 scales have up to 56 bits: there it is the definition to within a rounding of float64 a product.)
void products(const SomeRows& a, const SomeRows& b1_gate, const SomeRows* b2_up, Accumulation accumulation, int threads,
              const OutputSink& sink);
/// Those of a dual GEMM over a region.
void products(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Region& region,
              Accumulation accumulation, int threads, const OutputSink& sink);

}  // namespace thresher::reference
