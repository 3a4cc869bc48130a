#include "reference/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "reference/output_format.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool same_non_finite(double left, double right) {
  return (std::isnan(left) && std::isnan(right)) || (std::isinf(left) && left == right);
}

/// Tiles of the output; the last one along each side takes the ragged rest in, so that none is a sliver.
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

/// How far the output moves when gate and up are off by twice the plain error.
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

void check_sizes(const OutputMatrix& of, Rule rule, const Region& region, const Outputs& reference,
                 const Outputs& plain, const Tensor& c) {
  formats::check_matrix(c, "c", of.m, of.n, of.out);
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
}

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
  const TileGrid grid(of);
  const bool general = rule == Rule::general;
  const std::vector<PlainErrors> errors = general ? plain_errors_by_tile(grid, region, of.activation, reference, plain)
                                                  : std::vector<PlainErrors>(grid.count());
  std::vector<TileSums> tiles(grid.count());
  Verdict verdict;
  verdict.rule = rule;
  verdict.elements = region.elements();
  for_each_place(region, [&](std::int64_t row, std::int64_t column, std::size_t index) {
    const std::size_t tile = grid.of(row, column);
    ElementEvidence element{row, column, formats::element(c, row, column), reference.value[index], 0.0, 0.0};
    if (std::isfinite(element.reference)) {
      element.bound = bound_for(of, rule, row, reference.gate[index], reference.up[index], errors[tile]);
    }
    element.ratio = error_ratio(rule, of.out, element.value, element.reference, element.bound);
    if (general && element.ratio > 1.0 && same_non_finite(element.value, plain.value[index])) {
      element.ratio = 0.0;
    }
    tiles[tile].add(element);
    verdict.wrong += element.ratio > 1.0 ? 1 : 0;
    if (verdict.worst.row < 0 || element.ratio > verdict.worst.ratio) {
      verdict.worst = element;
    }
  });
  verdict.passed = verdict.wrong == 0;
  verdict.worst_tile = worst_of(grid, tiles);
  return verdict;
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
  return fmt::format(
      "{}: {} of {} outputs are outside the {} bound; the worst is {} at [{}, {}] where the reference is {} ± {}; the "
      "worst tile starts at [{}, {}] with {} of {} outside and a relative error of {:.2e}",
      passed ? "correct" : "wrong", wrong, elements, name(rule), worst.value, worst.row, worst.column, worst.reference,
      worst.bound, worst_tile.row, worst_tile.column, worst_tile.wrong, worst_tile.elements, worst_tile.relative_error);
}

}  // namespace thresher::reference
