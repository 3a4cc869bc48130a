#pragma once
/// The products of a dual GEMM or of one matrix over a region, blocked and threaded.
#include <cstdint>
#include <functional>
#include <span>

#include "reference/region.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

/// How a sum over K is accumulated; K always ascends from a sum of 0.
enum class Accumulation : std::uint8_t {
  float64,
  float32,  ///< one product at a time, rounded to nearest: an ordinary processor
  /// 16 products at a time added exactly, the new sum truncated to float32's 24 bits: a GPU's tensor cores
  float32_truncated,
  /// 32 products at a time as Hopper's tensor cores for 8-bit operands add them (aligned_product.hpp), to 14 bits
  float14_truncated,
  /// The same for 128 of K at a time, then FP32 accumulation: kernels for FP8 on Hopper with numerics exact
  float14_promoted,
};

/// Some rows of a matrix that check_matrix accepts, in any order.
struct SomeRows {
  const Tensor& matrix;
  std::span<const std::int64_t> rows;
};

/// Takes gate and up of output [row, column], which index `a`'s and `b`'s rows. Called once for each, from several
/// threads at once. With one matrix, up is 0.
using OutputSink = std::function<void(std::size_t row, std::size_t column, double gate, double up)>;

/// Global scales multiply the finished sums, in the precision of the sums. With float64 this is bit for bit the
/// definition: products of two elements are exact there, so fusing multiply and add changes nothing. Elements with
/// float32 scales are an exception: their products have up to 56 bits, so a product may differ by one rounding of
/// float64.
void products(const SomeRows& a, const SomeRows& b1_gate, const SomeRows* b2_up, Accumulation accumulation, int threads,
              const OutputSink& sink);
/// The products of a dual GEMM over a region.
void products(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Region& region,
              Accumulation accumulation, int threads, const OutputSink& sink);

}  // namespace thresher::reference
