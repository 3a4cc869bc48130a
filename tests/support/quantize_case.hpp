#pragma once
/// Owned tensors for one quantization, random and reproducible.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "formats/decode.hpp"
#include "formats/numbers.hpp"
#include "formats/quantize_row.hpp"
#include "thresher/quantize.hpp"

namespace thresher::test {

/// How the scales and the rows of a case lie.
struct QuantizeLayout {
  ScaleLayout scales = ScaleLayout::row_major;
  bool powers_of_two = false;
  std::int64_t gap = 0;  ///< elements between rows of x and of out
};

/// Rows of every kind, one after the other: normal numbers, zeros of both signs, the smallest numbers, the largest
/// ones, any bits, infinities among others, and few numbers among zeros.
class QuantizeCase {
 public:
  explicit QuantizeCase(const QuantizeProblem& of, const QuantizeLayout& layout = {}) : problem(of) {
    const std::int64_t stride = problem.columns + layout.gap;
    values.resize(static_cast<std::size_t>(problem.rows * stride));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = drawn(static_cast<std::int64_t>(i) / stride % 7);
    }
    codes.assign(values.size(), poison);
    x = matrix(values.data(), problem.x, stride);
    out = matrix(codes.data(), problem.out, stride);
    out.scales.layout = layout.scales;
    out.scales.powers_of_two = layout.powers_of_two;
    out.describe_scales(OperandRole::tokens);
    scales.assign(
        scale_bytes(problem.out, OperandRole::tokens, problem.rows, problem.columns, layout.scales) / sizeof(float),
        -1.0F);
    out.scales.data = scales.data();
  }
  QuantizeCase(const QuantizeCase&) = delete;
  QuantizeCase& operator=(const QuantizeCase&) = delete;

  /// Returns what `run` wrote that is not by the definition; empty when nothing is.
  [[nodiscard]] std::string fault_after(const std::function<void()>& run) {
    std::vector<std::uint8_t> right_codes = codes;
    std::vector<float> right_scales = scales;
    Tensor right = out;
    right.data = right_codes.data();
    right.scales.data = right_scales.data();
    std::vector<float> row(static_cast<std::size_t>(problem.columns));
    for (std::int64_t r = 0; r < x.shape[0]; ++r) {
      Tensor source = x;
      source.data = values.data();
      source.device = {};
      formats::decode_row(source, r, std::span<float>(row));
      formats::quantize_row(right, r, row);
    }
    run();
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const bool are_nan = formats::is_e4m3_nan(codes[i]) && formats::is_e4m3_nan(right_codes[i]);
      if (codes[i] != right_codes[i] && !are_nan) {
        return fmt::format("code {} is {:#x}, expected {:#x} of {:#x}", i, codes[i], right_codes[i], values[i]);
      }
    }
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if (std::memcmp(&scales[i], &right_scales[i], sizeof(float)) != 0) {
        return fmt::format("scale {} is {:a}, expected {:a}", i, scales[i], right_scales[i]);
      }
    }
    return {};
  }

  QuantizeProblem problem;
  Tensor x, out;
  std::vector<std::uint16_t> values;
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;

 private:
  static constexpr std::uint8_t poison = 0xA5;

  [[nodiscard]] Tensor matrix(void* data, Format format, std::int64_t stride) const {
    Tensor made = Tensor::contiguous(data, format, {problem.rows, problem.columns});
    made.strides[0] = stride;
    return made;
  }

  std::uint16_t drawn(std::int64_t kind) {
    const auto any = static_cast<std::uint16_t>(random_());
    const auto sign = static_cast<std::uint16_t>(any & 0x8000U);
    const bool is_half = problem.x == Format::fp16;
    const auto infinity = static_cast<std::uint16_t>(is_half ? 0x7C00 : 0x7F80);
    const auto quiet = static_cast<std::uint16_t>(is_half ? 0x200 : 0x40);  // the host's maximum keeps a signaling NaN
    const auto rounded = [&](float value) {
      return is_half ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
    };
    switch (kind) {
      case 0: return rounded(std::normal_distribution<float>(0.0F, 1.0F)(random_));
      case 1: return sign;
      case 2: return static_cast<std::uint16_t>(sign | (any & 0x1FFU));
      case 3: return static_cast<std::uint16_t>(sign | (infinity - 1 - (any & 0x3FFU)));
      case 4: return (any & 0x7FFFU) > infinity ? static_cast<std::uint16_t>(any | quiet) : any;
      case 5: return static_cast<std::uint16_t>(any % 200 == 0 ? sign | infinity : rounded(1.0F + (any & 0xFU)));
      default: return rounded(any % 100 == 0 ? -3.5F : 0.0F);
    }
  }

  std::mt19937 random_{11};
};

}  // namespace thresher::test
