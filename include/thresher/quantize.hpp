#pragma once
/// Tokens of 16 bits in FP8, as products with FP8 weights take them on a GPU. Plan once and run many times.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "thresher/device.hpp"
#include "thresher/tensor.hpp"

namespace thresher {

/// Each value is divided by its scale, rounded to nearest even, and saturated at 448. A scale is amax / 448 of the
/// values that share it, at least 2^-126, and 1 where all of them are 0. With Scales::powers_of_two of the output it is
/// rounded up to a power of two. NaN stays NaN and does not count for amax. Values beside an infinity read as NaN.
struct QuantizeProblem {
  std::int64_t rows = 0;           ///< the maximum of a call
  std::int64_t columns = 0;        ///< K, a multiple of 16
  Format x = Format::bf16;         ///< fp16 or bf16
  Format out = Format::fp8_block;  ///< fp8_block, with a scale per 128 along K of a row, or fp8_row
  bool operator==(const QuantizeProblem&) const = default;
};

struct QuantizeOptions {
  int threads = 0;  ///< CPU: threads to use, 0 for all
  bool operator==(const QuantizeOptions&) const = default;
};

/// A planned quantization. Several threads may call `run`. Lifetimes are as for DualGemm.
class Quantize {
 public:
  class Backend;
  explicit Quantize(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  /// x and out are [rows, columns], of 0 to problem.rows rows. Row strides may exceed the row length. Writes the values
  /// and the scales of out, which must not overlap x or one another. One launch on a GPU: asynchronous, no allocation,
  /// no synchronisation, graph-capturable. There it uses programmatic dependent launch (PDL): it may start while the
  /// previous call in the stream is ending. Synchronous on the CPU. Throws Error(invalid_argument) before anything is
  /// written.
  void run(Stream stream, const Tensor& x, const Tensor& out) const;

  [[nodiscard]] const QuantizeProblem& problem() const noexcept;

 private:
  std::shared_ptr<const Backend> backend_;
};

/// May compile. Throws Error(invalid_argument) with a sentence that names argument, value and limit. Throws
/// Error(unsupported) for a GPU whose compute capability is neither 9.0 nor 10.x.
Quantize plan(const Device& device, const QuantizeProblem& problem, const QuantizeOptions& options = {});

}  // namespace thresher

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::QuantizeProblem> {
  std::size_t operator()(const thresher::QuantizeProblem& problem) const noexcept;
};
template <>
struct std::hash<thresher::QuantizeOptions> {
  std::size_t operator()(const thresher::QuantizeOptions& options) const noexcept;
};
