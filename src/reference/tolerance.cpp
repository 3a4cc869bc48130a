#include "reference/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "reference/output_format.hpp"
#include "reference/quantized_output.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool same_non_finite(double left, double right) {
  return (std::isnan(left) && std::isnan(right)) || (std::isinf(left) && left == right);
}

/// Tiles of the output; the last one along each side includes the remainder, so that none is too small.
class TileGrid {
 public:
  explicit TileGrid(const OutputMatrix& of)
      : rows_(std::max<std::int64_t>(1, of.m / tile_side)), columns_(std::max<std::int64_t>(1, of.n / tile_side)) {}

  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(rows_ * columns_); }
  [[nodiscard]] std::size_t of(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(std::min(row / tile_side, rows_ - 1) * columns_ +
                                    std::min(column / tile_side, columns_ - 1));
  }
  [[nodiscard]] std::int64_t first_row(std::size_t tile) const {
    return static_cast<std::int64_t>(tile) / columns_ * tile_side;
  }
  [[nodiscard]] std::int64_t first_column(std::size_t tile) const {
    return static_cast<std::int64_t>(tile) % columns_ * tile_side;
  }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
};

template <typename Visit>
void for_each_place(const Region& region, Visit visit) {
  std::size_t index = 0;
  for (const std::int64_t row : region.rows) {
    for (const std::int64_t column : region.columns) {
      visit(row, column, index++);
    }
  }
}

/// Raises `largest` to |value - reference| unless that is NaN or Inf.
void raise(double& largest, double value, double reference) {
  const double error = std::fabs(value - reference);
  if (std::isfinite(error)) {
    largest = std::max(largest, error);
  }
}

void raise(PlainErrors& largest, const std::optional<Activation>& activation, const Outputs& reference,
           const Outputs& plain, std::size_t index) {
  const double gate = plain.gate[index];
  const double up = plain.up[index];
  raise(largest.gate, gate, reference.gate[index]);
  raise(largest.up, up, reference.up[index]);
  const float in_float32 = unrounded(static_cast<float>(gate), static_cast<float>(up), activation, 1.0F);
  raise(largest.activation, static_cast<double>(in_float32), unrounded(gate, up, activation, 1.0));
}

std::vector<PlainErrors> plain_errors_by_tile(const TileGrid& grid, const Region& region,
                                              const std::optional<Activation>& activation, const Outputs& reference,
                                              const Outputs& plain) {
  std::vector<PlainErrors> errors(grid.count());
  for_each_place(region, [&](std::int64_t row, std::int64_t column, std::size_t index) {
    raise(errors[grid.of(row, column)], activation, reference, plain, index);
  });
  return errors;
}

/// The change of the output when gate and up are off by twice the plain error.
double spread(const std::optional<Activation>& activation, double gate, double up, const PlainErrors& plain) {
  const double value = unrounded(gate, up, activation, 1.0);
  double largest = 0.0;
  for (const double gate_error : {-2.0 * plain.gate, 2.0 * plain.gate}) {
    for (const double up_error : {-2.0 * plain.up, 2.0 * plain.up}) {
      raise(largest, unrounded(gate + gate_error, up + up_error, activation, 1.0), value);
    }
  }
  return largest;
}

/// error / bound of an output whose reference is finite.
double finite_ratio(Rule rule, Format out, double value, double reference, double bound) {
  if (rule == Rule::exact) {
    return value == round_to(out, reference) ? 0.0 : infinity;
  }
  if (std::isinf(value)) {
    const bool in_reach = std::fabs(reference) + bound >= overflow_threshold(out);
    return in_reach && std::signbit(value) == std::signbit(reference) ? 1.0 : infinity;
  }
  return std::isnan(value) ? infinity : std::fabs(value - reference) / bound;
}

/// Sums over one tile while the elements pass by.
struct TileSums {
  std::int64_t elements = 0;
  std::int64_t wrong = 0;
  double squared_ratios = 0.0;
  double squared_errors = 0.0;
  double squared_references = 0.0;

  void add(const ElementEvidence& element) {
    ++elements;
    wrong += element.ratio > 1.0 ? 1 : 0;
    squared_ratios += element.ratio * element.ratio;
    if (std::isfinite(element.value) && std::isfinite(element.reference)) {
      squared_errors += std::pow(element.value - element.reference, 2);
      squared_references += std::pow(element.reference, 2);
    }
  }

  [[nodiscard]] TileEvidence evidence(std::int64_t row, std::int64_t column) const {
    const double relative = squared_errors == 0.0 ? 0.0 : std::sqrt(squared_errors / squared_references);
    return {row, column, elements, wrong, std::sqrt(squared_ratios / static_cast<double>(elements)), relative};
  }
};

bool is_worse(const TileEvidence& tile, const TileEvidence& than) {
  return than.elements == 0 || tile.wrong > than.wrong || (tile.wrong == than.wrong && tile.rms_ratio > than.rms_ratio);
}

TileEvidence worst_of(const TileGrid& grid, const std::vector<TileSums>& tiles) {
  TileEvidence worst;
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    if (tiles[tile].elements == 0) {
      continue;
    }
    const TileEvidence evidence = tiles[tile].evidence(grid.first_row(tile), grid.first_column(tile));
    if (is_worse(evidence, worst)) {
      worst = evidence;
    }
  }
  return worst;
}

/// All columns that share a dynamic scale must be present.
void check_scales_are_whole(const OutputMatrix& of, const Region& region) {
  const auto judged = std::ssize(region.columns);
  const auto needed = std::ssize(with_whole_scales(region, of.out, of.n).columns);
  if (judged != needed) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} of {} columns of {} are judged, but {} share a scale",
                                                         judged, of.n, name(of.out), columns_per_scale(of.out, of.n)));
  }
}

void check_sizes(const OutputMatrix& of, Rule rule, const Region& region, const Outputs& reference,
                 const Outputs& plain, const Tensor& c) {
  formats::check_matrix(c, "c", c.shape[0], of.n, of.out);
  if (c.shape[0] < of.first_row + of.m) {
    throw Error(ErrorCode::invalid_argument, fmt::format("c has {} rows, but its rows from {} to {} are judged",
                                                         c.shape[0], of.first_row, of.first_row + of.m - 1));
  }
  const auto elements = static_cast<std::size_t>(region.elements());
  const auto fits = [elements](const Outputs& outputs) {
    return outputs.gate.size() == elements && outputs.up.size() == elements && outputs.value.size() == elements;
  };
  if (!fits(reference) || (rule == Rule::general && !fits(plain))) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the region has {} elements, but the reference has {} and the plain computation {}",
                            elements, reference.value.size(), plain.value.size()));
  }
  if (elements != 0 && (region.rows.back() >= of.m || region.columns.back() >= of.n)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the region reaches row {} and column {}, but c is [{}, {}]",
                                                         region.rows.back(), region.columns.back(), of.m, of.n));
  }
  check_scales_are_whole(of, region);
}

/// One judgement in progress: its request and its findings.
class Judging {
 public:
  Judging(const OutputMatrix& of, Rule rule, const Region& region, const Outputs& reference, const Outputs& plain,
          const Tensor& c)
      : of_(of), region_(region), reference_(reference), plain_(plain), c_(c), grid_(of), tiles_(grid_.count()) {
    verdict_.rule = rule;
    verdict_.elements = region.elements();
    errors_ = is_general() ? plain_errors_by_tile(grid_, region, of.activation, reference, plain)
                           : std::vector<PlainErrors>(grid_.count());
  }

  void look_at_values() {
    for_each_place(region_, [&](std::int64_t row, std::int64_t column, std::size_t index) {
      ElementEvidence element = evidence(row, column, index);
      element.ratio = error_ratio(verdict_.rule, of_.out, element.value, element.reference, element.bound);
      if (is_general() && element.ratio > 1.0 && same_non_finite(element.value, plain_.value[index])) {
        element.ratio = 0.0;
      }
      take(element);
    });
  }

  /// Checks values that share a scale together.
  void check_quantized_values() {
    const std::int64_t shared = columns_per_scale(of_.out, of_.n);
    std::size_t index = 0;
    for (const std::int64_t row : region_.rows) {
      for (std::size_t first = 0; first < region_.columns.size();) {
        const std::int64_t block = region_.columns[first] / shared;
        std::size_t end = first + 1;
        while (end < region_.columns.size() && region_.columns[end] / shared == block) {
          ++end;
        }
        look_at_scale(row, std::span(region_.columns).subspan(first, end - first), index);
        index += end - first;
        first = end;
      }
    }
  }

  [[nodiscard]] Verdict verdict() {
    verdict_.passed = verdict_.wrong == 0;
    verdict_.worst_tile = worst_of(grid_, tiles_);
    return verdict_;
  }

 private:
  [[nodiscard]] bool is_general() const { return verdict_.rule == Rule::general; }

  [[nodiscard]] ElementEvidence evidence(std::int64_t row, std::int64_t column, std::size_t index) const {
    ElementEvidence element{row, column, output_value(c_, of_.first_row + row, column), reference_.value[index],
                            0.0, 0.0};
    if (std::isfinite(element.reference)) {
      element.bound = bound_for(of_, verdict_.rule, row, reference_.gate[index], reference_.up[index],
                                errors_[grid_.of(row, column)]);
    }
    return element;
  }

  void take(const ElementEvidence& element) {
    tiles_[grid_.of(element.row, element.column)].add(element);
    verdict_.wrong += element.ratio > 1.0 ? 1 : 0;
    if (verdict_.worst.row < 0 || element.ratio > verdict_.worst.ratio) {
      verdict_.worst = element;
    }
  }

  [[nodiscard]] ValueRange range_of(const ElementEvidence& element, std::size_t index) const {
    return {.low = element.reference - element.bound,
            .high = element.reference + element.bound,
            .is_nan = std::isnan(element.reference),
            .is_unknown = is_general() && !std::isfinite(plain_.value[index]) &&
                          !same_non_finite(plain_.value[index], element.reference)};
  }

  void look_at_scale(std::int64_t row, std::span<const std::int64_t> columns, std::size_t index) {
    std::vector<ElementEvidence> elements;
    std::vector<ValueRange> values;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      elements.push_back(evidence(row, columns[i], index + i));
      values.push_back(range_of(elements.back(), index + i));
    }
    const bool is_right = !format_traits(of_.out).has_scales() || is_right_scale(row, columns.front(), values);
    const double scale = output_scale(c_, of_.first_row + row, columns.front());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const NumberRange right = right_numbers(of_.out, values[i], scale);
      const bool holds = right.holds(elements[i].value);
      const double reach = elements[i].value > elements[i].reference ? right.high - elements[i].reference
                                                                     : elements[i].reference - right.low;
      const double off = std::fabs(elements[i].value - elements[i].reference);
      elements[i].bound = std::isfinite(reach) ? std::max(reach, 0.0) : 0.0;
      const double ratio = std::isfinite(off) && elements[i].bound > 0.0 ? off / elements[i].bound : 0.0;
      elements[i].ratio = !is_right ? infinity : holds ? std::min(ratio, 1.0) : (ratio > 1.0 ? ratio : infinity);
      take(elements[i]);
    }
  }

  bool is_right_scale(std::int64_t row, std::int64_t column, std::span<const ValueRange> values) {
    const ScaleRange right = right_scales(c_, values);
    const double global_scale = of_.out == Format::nvfp4 ? formats::global_scale(c_) : 1.0;
    const double scale = output_scale(c_, of_.first_row + row, column) / global_scale;
    if (right.holds(scale)) {
      return true;
    }
    if (verdict_.wrong_scales++ == 0) {
      verdict_.first_wrong_scale = {row, column, scale, right.low, right.high};
    }
    return false;
  }

  const OutputMatrix& of_;
  const Region& region_;
  const Outputs& reference_;
  const Outputs& plain_;
  const Tensor& c_;
  TileGrid grid_;
  std::vector<PlainErrors> errors_;
  std::vector<TileSums> tiles_;
  Verdict verdict_;
};

}  // namespace

std::string_view name(Rule rule) noexcept {
  switch (rule) {
    case Rule::general: return "general";
    case Rule::contest: return "contest";
    case Rule::exact: return "exact";
  }
  return "unknown";
}

OutputMatrix output_of(const DualGemmProblem& problem) noexcept {
  return {.m = problem.m, .n = problem.n, .out = problem.out, .activation = problem.activation};
}

PlainErrors plain_errors(const std::optional<Activation>& activation, const Outputs& reference, const Outputs& plain) {
  PlainErrors largest;
  for (std::size_t index = 0; index < reference.value.size(); ++index) {
    raise(largest, activation, reference, plain, index);
  }
  return largest;
}

double bound_for(const OutputMatrix& of, Rule rule, std::int64_t row, double gate, double up,
                 const PlainErrors& plain) {
  const double row_weight = of.row_weight(row);
  const double value = output_element(gate, up, of.activation, row_weight);
  switch (rule) {
    case Rule::general:
      return std::fabs(row_weight) * (spread(of.activation, gate, up, plain) + 2.0 * plain.activation) +
             2.0 * ulp(of.out, value);
    case Rule::contest: return 1e-3 + 1e-3 * std::fabs(value);
    case Rule::exact: return 0.0;
  }
  return 0.0;
}

double error_ratio(Rule rule, Format out, double value, double reference, double bound) {
  return std::isfinite(reference) ? finite_ratio(rule, out, value, reference, bound)
                                  : (same_non_finite(value, reference) ? 0.0 : infinity);
}

Verdict judge(const OutputMatrix& of, Rule rule, const Region& region, const Outputs& reference, const Outputs& plain,
              const Tensor& c) {
  check_sizes(of, rule, region, reference, plain, c);
  Judging judging(of, rule, region, reference, plain, c);
  if (format_traits(of.out).is_quantized_output()) {
    judging.check_quantized_values();
  } else {
    judging.look_at_values();
  }
  return judging.verdict();
}

Verdict judge(const DualGemmProblem& problem, Rule rule, const Region& region, const Outputs& reference,
              const Outputs& plain, const Tensor& c) {
  return judge(output_of(problem), rule, region, reference, plain, c);
}

Verdict judge_dual_gemm(const DualGemmProblem& problem, Rule rule, const Tensor& a, const Tensor& b1_gate,
                        const Tensor& b2_up, const Tensor& c, const Region& region, Accumulation accumulation,
                        int threads) {
  const Outputs reference = dual_gemm_fast(problem, a, b1_gate, b2_up, region, threads);
  Outputs plain;
  if (rule == Rule::general) {
    plain = plain_low_precision(problem, a, b1_gate, b2_up, region, accumulation, threads);
  }
  return judge(problem, rule, region, reference, plain, c);
}

void Verdict::include(Verdict other, std::int64_t first_row) {
  passed = passed && other.passed;
  rule = other.rule;
  elements += other.elements;
  wrong += other.wrong;
  if (other.wrong_scales > 0 && wrong_scales == 0) {
    first_wrong_scale = other.first_wrong_scale;
    first_wrong_scale.row += first_row;
  }
  wrong_scales += other.wrong_scales;
  if (other.worst.row >= 0 && (worst.row < 0 || other.worst.ratio > worst.ratio)) {
    worst = other.worst;
    worst.row += first_row;
  }
  if (other.worst_tile.elements > 0 && is_worse(other.worst_tile, worst_tile)) {
    worst_tile = other.worst_tile;
    worst_tile.row += first_row;
  }
}

std::string Verdict::explain() const {
  if (elements == 0) {
    return "correct: there is nothing to compare";
  }
  const ScaleEvidence& scale = first_wrong_scale;
  const std::string scales =
      wrong_scales == 0 ? ""
                        : fmt::format("; {} scales are wrong, the first is {} at [{}, {}] where {} to {} are right",
                                      wrong_scales, scale.value, scale.row, scale.column, scale.low, scale.high);
  return fmt::format(
      "{}: {} of {} outputs are outside the {} bound; the worst is {} at [{}, {}] where the reference is {} ± {}; the "
      "worst tile starts at [{}, {}] with {} of {} outside and a relative error of {:.2e}{}",
      passed ? "correct" : "wrong", wrong, elements, name(rule), worst.value, worst.row, worst.column, worst.reference,
      worst.bound, worst_tile.row, worst_tile.column, worst_tile.wrong, worst_tile.elements, worst_tile.relative_error,
      scales);
}

}  // namespace thresher::reference
