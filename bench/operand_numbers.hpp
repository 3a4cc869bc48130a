#pragma once
// Operands of benchmarks: numbers that the host knows and the GPU has without a copy of all of them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "formats/numbers.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/tensor.hpp"

namespace thresher::bench {

inline bool is_fp8(Format format) { return format_traits(format).product_format == Format::fp8_e4m3; }

/// Bytes with a period that divides no row, equal on the host and on the GPU.
class Pattern {
 public:
  static constexpr std::size_t period = 8'388'593;  ///< elements; a prime

  /// Normally distributed 16-bit numbers.
  static Pattern normal(Format format, float deviation, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> distribution(0.0F, deviation);
    Pattern pattern;
    pattern.bytes_.reserve(period * 2);
    for (std::size_t i = 0; i < period; ++i) {
      const float value = distribution(random);
      const unsigned word = format == Format::bf16 ? formats::float_to_bf16(value) : formats::float_to_fp16(value);
      pattern.bytes_.push_back(static_cast<std::uint8_t>(word & 0xFFU));
      pattern.bytes_.push_back(static_cast<std::uint8_t>(word >> 8U));
    }
    return pattern;
  }
  /// Bytes from `first` to `last`.
  static Pattern bytes(unsigned first, unsigned last, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<unsigned> distribution(first, last);
    Pattern pattern;
    pattern.bytes_.resize(period);
    std::generate(pattern.bytes_.begin(), pattern.bytes_.end(),
                  [&] { return static_cast<std::uint8_t>(distribution(random)); });
    return pattern;
  }

  /// Normally distributed e4m3 numbers.
  static Pattern codes(float deviation, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> distribution(0.0F, deviation);
    Pattern pattern;
    pattern.bytes_.resize(period);
    std::generate(pattern.bytes_.begin(), pattern.bytes_.end(),
                  [&] { return formats::float_to_e4m3(distribution(random)); });
    return pattern;
  }
  /// Positive float32 numbers around `middle`.
  static Pattern reals(float middle, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> distribution(0.75F * middle, 1.25F * middle);
    Pattern pattern;
    pattern.bytes_.resize(period * sizeof(float));
    for (std::size_t i = 0; i < period; ++i) {
      const float value = distribution(random);
      std::memcpy(&pattern.bytes_[i * sizeof(float)], &value, sizeof(float));
    }
    return pattern;
  }

  [[nodiscard]] std::uint8_t byte(std::size_t at) const { return bytes_[at % bytes_.size()]; }
  [[nodiscard]] float real(std::size_t at) const {
    float value = 0;
    std::memcpy(&value, &bytes_[at % period * sizeof(float)], sizeof(float));
    return value;
  }
  [[nodiscard]] std::uint16_t word(std::size_t at) const {
    const std::size_t first = at % period * 2;
    return static_cast<std::uint16_t>(bytes_[first] | bytes_[first + 1] << 8U);
  }
  [[nodiscard]] runtime::DeviceBuffer on_gpu(std::size_t bytes) const {
    runtime::DeviceBuffer buffer(0, bytes, "an operand");
    auto* const to = static_cast<std::byte*>(buffer.data());
    const std::size_t first = std::min(bytes, bytes_.size());
    runtime::copy(to, bytes_.data(), first, 0);
    for (std::size_t at = first; at < bytes; at += bytes_.size()) {
      runtime::copy_async(to + at, to, std::min(bytes_.size(), bytes - at), {}, 0);
    }
    runtime::synchronize({}, 0);
    return buffer;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// One operand's numbers: `matrices` of [rows, k], by matrix, row and place along K. FP8 numbers have scales, so that
/// the deviation is the requested one in every format.
class Numbers {
 public:
  struct Shape {
    std::int64_t matrices;
    std::int64_t rows;
    std::int64_t k;
  };

  Numbers(Format format, OperandRole role, const Shape& shape, float deviation, unsigned seed)
      : format_(format),
        role_(role),
        shape_(shape),
        values_(format == Format::nvfp4 ? Pattern::bytes(0, 255, seed)
                : is_fp8(format)        ? Pattern::codes(fp8_deviation, seed)
                                        : Pattern::normal(format, deviation, seed)),
        scales_(is_fp8(format)
                    ? Pattern::reals(deviation / fp8_deviation, seed + 1)
                    : Pattern::bytes(deviation < 0.1F ? 0x08 : 0x28, deviation < 0.1F ? 0x14 : 0x34, seed + 1)) {}

  [[nodiscard]] double at(std::int64_t matrix, std::int64_t row, std::int64_t k) const {
    const auto element = static_cast<std::size_t>((matrix * shape_.rows + row) * shape_.k + k);
    if (format_ == Format::nvfp4) {
      const std::uint8_t code = values_.byte(element / 2) >> (element % 2 * 4) & 0xFU;
      return static_cast<double>(formats::e2m1_to_float(code)) *
             static_cast<double>(formats::e4m3_to_float(scales_.byte(element / 16)));
    }
    if (is_fp8(format_)) {
      return static_cast<double>(formats::e4m3_to_float(values_.byte(element))) *
             static_cast<double>(scales_.real(scale_index(matrix, row, k)));
    }
    const std::uint16_t word = values_.word(element);
    return static_cast<double>(format_ == Format::bf16 ? formats::bf16_to_float(word) : formats::fp16_to_float(word));
  }

  struct OnGpu {
    runtime::DeviceBuffer values;
    runtime::DeviceBuffer scales;
    Tensor tensor;
  };
  /// Tokens are one matrix [rows, k], weights a stack [matrices, rows, k].
  [[nodiscard]] OnGpu on_gpu() const {
    const auto elements = static_cast<std::size_t>(shape_.matrices * shape_.rows * shape_.k);
    OnGpu made{values_.on_gpu(elements * static_cast<std::size_t>(bits(format_)) / 8), {}, {}};
    const std::array extents{shape_.matrices, shape_.rows, shape_.k};
    const std::span<const std::int64_t> all(extents);
    made.tensor = Tensor::contiguous(made.values.data(), format_, role_ == OperandRole::tokens ? all.last(2) : all,
                                     made.values.device());
    if (format_ == Format::fp8_tensor) {
      made.scales = scales_.on_gpu(static_cast<std::size_t>(shape_.matrices) * sizeof(float));
      made.tensor.global_scale = static_cast<const float*>(made.scales.data());
    } else if (format_traits(format_).has_scales()) {
      made.tensor.describe_scales(role_);
      made.scales = scales_.on_gpu(scale_bytes(made.tensor));
      made.tensor.scales.data = made.scales.data();
    }
    return made;
  }

 private:
  static constexpr float fp8_deviation = 32.0F;

  /// The index of a scale in [matrix, row, block] order.
  [[nodiscard]] std::size_t scale_index(std::int64_t matrix, std::int64_t row, std::int64_t k) const {
    const Scales::Block block = scale_block_of(format_, role_, shape_.k);
    if (format_ == Format::fp8_tensor) {
      return static_cast<std::size_t>(matrix);
    }
    const std::int64_t rows = (shape_.rows + block.rows - 1) / block.rows;
    const std::int64_t columns = (shape_.k + block.columns - 1) / block.columns;
    return static_cast<std::size_t>((matrix * rows + row / block.rows) * columns + k / block.columns);
  }

  Format format_;
  OperandRole role_;
  Shape shape_;
  Pattern values_;
  Pattern scales_;
};

}  // namespace thresher::bench
