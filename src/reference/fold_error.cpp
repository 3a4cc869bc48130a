#include "reference/fold_error.hpp"

#include <cmath>
#include <optional>
#include <random>
#include <span>

#include "formats/mxfp4.hpp"
#include "formats/numbers.hpp"
#include "formats/nvfp4.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/fold.hpp"

namespace thresher::reference {
namespace {

using Values = std::vector<float>;

constexpr std::int64_t columns_an_outlier = 64;
constexpr float outlier = 30.0F;

Values drawn(Data data, bool is_tokens, std::int64_t rows, std::int64_t k, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::student_t_distribution<float> heavy(3.0F);
  Values values(static_cast<std::size_t>(rows * k));
  const float scale = is_tokens ? 1.0F : 1.0F / std::sqrt(static_cast<float>(k));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % k;
    const float value = data == Data::heavy_tailed ? heavy(random) : normal(random);
    const bool is_outlier = data == Data::outlier_channels && is_tokens && column % columns_an_outlier == 7;
    values[i] = scale * value * (is_outlier ? outlier : 1.0F);
  }
  return values;
}

Tensor view_of(Values& values, std::int64_t rows, std::int64_t k) {
  return Tensor::contiguous(values.data(), Format::fp32, {rows, k});
}

/// 16-bit tokens, as float32.
Values rounded(const Values& values, Format format) {
  Values out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i] = format == Format::bf16 ? formats::bf16_to_float(formats::float_to_bf16(values[i]))
                                    : formats::fp16_to_float(formats::float_to_fp16(values[i]));
  }
  return out;
}

/// A matrix of weights in 4 bits.
class Packed {
 public:
  Packed(Values& values, FourBits format, std::int64_t rows, std::int64_t k) : rows_(rows), k_(k) {
    if (format == FourBits::nvfp4) {
      nvfp4_ = formats::quantize_nvfp4(view_of(values, rows, k), "weights");
      return;
    }
    const formats::Mxfp4Matrix made = formats::quantize_mxfp4(view_of(values, rows, k), "weights");
    const auto codes = std::as_bytes(std::span(made.values));
    held_ = formats::hold_mxfp4({codes.begin(), codes.end()}, std::as_bytes(std::span(made.exponents)), 1, "exponents");
  }
  [[nodiscard]] Tensor view() {
    if (nvfp4_) {
      return nvfp4_->view();
    }
    const auto* const scales = reinterpret_cast<const std::uint8_t*>(held_->scales.data());
    return Tensor::nvfp4(held_->data.data(), scales, rows_, k_, held_->global_scales.data());
  }

 private:
  std::int64_t rows_;
  std::int64_t k_;
  std::optional<formats::Nvfp4Matrix> nvfp4_{};
  std::optional<formats::HeldMxfp4> held_{};
};

double distance(const std::vector<double>& values, const std::vector<double>& from) {
  double squared_error = 0;
  double squared = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squared_error += (values[i] - from[i]) * (values[i] - from[i]);
    squared += from[i] * from[i];
  }
  return std::sqrt(squared_error / squared);
}

}  // namespace

std::string_view name(Data data) noexcept {
  switch (data) {
    case Data::normal: return "normal";
    case Data::heavy_tailed: return "heavy-tailed";
    case Data::outlier_channels: return "outlier channels";
  }
  return "unknown";
}

std::string_view name(FourBits format) noexcept { return format == FourBits::nvfp4 ? "nvfp4" : "mxfp4"; }

FoldErrors fold_errors(Data data, FourBits weights, Format tokens, std::int64_t m, std::int64_t n, std::int64_t k,
                       unsigned seed) {
  std::mt19937 random(seed);
  Values a = drawn(data, true, m, k, random);
  Values gate = drawn(data, false, n, k, random);
  Values up = drawn(data, false, n, k, random);
  formats::Nvfp4Matrix packed_a = formats::quantize_nvfp4(view_of(a, m, k), "a");
  Packed packed_gate(gate, weights, n, k);
  Packed packed_up(up, weights, n, k);
  Values wide_a = rounded(a, tokens);

  DualGemmProblem problem{.m = m, .n = n, .k = k, .a = Format::fp32, .b = Format::fp32, .out = Format::fp32};
  const Region region = whole(problem);
  const auto of = [&](const Tensor& x, const Tensor& y, const Tensor& z, Format b) {
    problem.a = x.format;
    problem.b = b;
    return dual_gemm_fast(problem, x, y, z, region).value;
  };
  const Tensor given = tokens == Format::nvfp4 ? packed_a.view() : view_of(wide_a, m, k);
  const Folded folded_a = fold_tokens(given);
  const Folded folded_gate = fold_weights(packed_gate.view());
  const Folded folded_up = fold_weights(packed_up.view());

  const std::vector<double> values = of(view_of(a, m, k), view_of(gate, n, k), view_of(up, n, k), Format::fp32);
  const std::vector<double> exact = of(given, packed_gate.view(), packed_up.view(), Format::nvfp4);
  const std::vector<double> fast = of(folded_a.view, folded_gate.view, folded_up.view, Format::fp32);
  const std::vector<double> unit = plain_low_precision(problem, folded_a.view, folded_gate.view, folded_up.view, region,
                                                       Accumulation::float14_truncated)
                                       .value;
  return {.packed = distance(exact, values),
          .fast = distance(fast, exact),
          .both = distance(fast, values),
          .accumulation = distance(unit, fast)};
}

}  // namespace thresher::reference
