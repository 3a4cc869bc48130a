#include "arena/dual_gemm/inspector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arena/dual_gemm/comparison.hpp"
#include "arena/dual_gemm/judge.hpp"
#include "formats/elements.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/fold.hpp"
#include "reference/output_format.hpp"
#include "reference/plain_sums.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {
namespace {

using reference::Accumulation;
using reference::Outputs;
using reference::PlainErrors;
using reference::Rule;

constexpr std::int64_t gauged_rows = 24;
constexpr std::int64_t gauged_columns = 64;
/// Elements that stand beside each other in a look, and how many of them are computed.
constexpr std::int64_t columns_of_a_look = 64;
constexpr std::size_t judged_of_a_look = 2;
/// Of a few elements the largest error is a little less than of all.
constexpr double beyond_the_gauge = 1.5;

/// So many of [0, extent) without repetition, ascending.
std::vector<std::int64_t> some_of(std::int64_t extent, std::int64_t most, Random& random) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i) {
    all[static_cast<std::size_t>(i)] = i;
  }
  if (extent > most) {
    random.shuffle(all);
    all.resize(static_cast<std::size_t>(most));
    std::sort(all.begin(), all.end());
  }
  return all;
}

/// These rows of a matrix, its scales by rows: also where rows share them, so it is none of weights.
HostTensor rows_of(const HostTensor& matrix, const std::vector<std::int64_t>& rows) {
  HostTensor some = make_host_tensor(matrix.name, matrix.format, {std::ssize(rows), matrix.shape[1]});
  some.global_scales = matrix.global_scales;
  const std::size_t row_bytes = some.values.size() / std::max<std::size_t>(rows.size(), 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(matrix.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rows[i]) * row_bytes),
                row_bytes, some.values.begin() + static_cast<std::ptrdiff_t>(i * row_bytes));
    if (!some.scales.empty()) {
      copy_row_scales(matrix, rows[i], some, static_cast<std::int64_t>(i));
    }
  }
  return some;
}

/// The rows of A, B1 and B2 that some rows crossed with some columns of the output are made of.
struct Operands {
  Operands(const HostTensor& all_a, const HostTensor& all_b1, const HostTensor& all_b2,
           const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns)
      : a(rows_of(all_a, rows)), b1(rows_of(all_b1, columns)), b2(rows_of(all_b2, columns)) {}
  HostTensor a, b1, b2;
};

class DualGemmInspector final : public Inspector {
 public:
  DualGemmInspector(const DualGemmProblem& problem, Distribution distribution, const std::vector<HostTensor>& inputs,
                    const Maker& maker, std::uint64_t seed)
      : problem_(problem),
        rule_(dual_gemm_rule(problem, distribution)),
        sums_(reference::plain_sums(problem.a, problem.b, maker.numerics, maker.device)),
        has_specials_(distribution == Distribution::specials) {
    Random random(seed);
    const Operands some(inputs.at(0), inputs.at(1), inputs.at(2), some_of(problem.m, gauged_rows, random),
                        some_of(problem.n, gauged_columns, random));
    rule_ = sums_.is_short() ? Rule::general : rule_;
    if (rule_ != Rule::general) {
      return;
    }
    const Outputs definition = compute(some, Accumulation::float64, sums_.is_folded);
    errors_ =
        reference::plain_errors(problem_.activation, definition, compute(some, sums_.accumulation, sums_.is_folded));
    errors_.gate *= beyond_the_gauge;
    errors_.up *= beyond_the_gauge;
    errors_.activation *= beyond_the_gauge;
    for (std::size_t i = 0; i < definition.value.size(); ++i) {
      const double bound = reference::bound_for(reference::output_of(problem_), rule_, 0, definition.gate[i],
                                                definition.up[i], errors_) -
                           2 * reference::ulp(problem_.out, definition.value[i]);
      widest_ = std::isfinite(bound) ? std::max(widest_, bound) : widest_;
    }
    if (sums_.is_folded) {
      folding_error_ = distance(definition.value, compute(some, Accumulation::float64, false).value);
    }
  }

  [[nodiscard]] Look choose(Random& random) const override {
    const std::int64_t columns = std::min(columns_of_a_look, problem_.n);
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
    };
    Look look{{{0, below(problem_.m), below(problem_.n - columns + 1), columns}}, {}};
    for (std::size_t i = 0; i < judged_of_a_look; ++i) {
      look.place.push_back(below(columns));
    }
    return look;
  }

  [[nodiscard]] std::string fault_in(const Look& look, const InputsOfCall& inputs, std::uint8_t poison) const override {
    const RowPart& part = look.parts.front();
    std::vector<std::uint8_t> bytes = part.bytes;
    const Tensor there = Tensor::contiguous(bytes.data(), problem_.out, {1, part.columns});
    const std::size_t element_bytes = bytes.size() / static_cast<std::size_t>(part.columns);
    const auto holds_poison = [&](std::int64_t column) {
      return is_poison(&bytes[static_cast<std::size_t>(column) * element_bytes], element_bytes, poison);
    };
    std::vector<std::int64_t> judged;
    for (std::int64_t column = 0; column < part.columns && judged.size() < judged_of_a_look; ++column) {
      if (holds_poison(column)) {
        judged.push_back(column);
      }
    }
    judged.insert(judged.end(), look.place.begin(), look.place.end());
    judged.resize(judged_of_a_look);
    std::vector<std::int64_t> columns;
    for (const std::int64_t column : judged) {
      columns.push_back(part.first_column + column);
    }
    const Operands operands(*inputs.at(0), *inputs.at(1), *inputs.at(2), {part.row}, columns);
    const Outputs definition = compute(operands, Accumulation::float64, sums_.is_folded);
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const double value = formats::element(there, 0, judged[i]);
      const double wanted = definition.value[i];
      const double bound =
          reference::bound_for(reference::output_of(problem_), rule_, 0, definition.gate[i], definition.up[i], errors_);
      if (reference::error_ratio(rule_, problem_.out, value, wanted, bound) > 1 && !is_plain(value, operands, i)) {
        return holds_poison(judged[i])
                   ? fmt::format("c[{}, {}] was not written, the definition gives {}", part.row, columns[i], wanted)
                   : fmt::format("c[{}, {}] is {}, the definition gives {} ± {:.3g}", part.row, columns[i], value,
                                 wanted, bound);
      }
    }
    return {};
  }

  [[nodiscard]] std::string fault_against(const std::vector<HostTensor>& outputs,
                                          const std::vector<HostTensor>& trusted) const override {
    const OutputComparison comparison{rule_, problem_.out, sums_.is_folded, has_specials_, widest_, folding_error_};
    return comparison.fault(outputs.at(0).view(), trusted.at(0).view());
  }

 private:
  [[nodiscard]] Outputs compute(const Operands& of, Accumulation accumulation, bool is_folded) const {
    DualGemmProblem part = problem_;
    part.m = of.a.rows();
    part.n = of.b1.rows();
    const auto over = [&](const Tensor& a, const Tensor& b1, const Tensor& b2) {
      const reference::Region all = reference::whole(part);
      return accumulation == Accumulation::float64
                 ? reference::dual_gemm_fast(part, a, b1, b2, all, 1)
                 : reference::plain_low_precision(part, a, b1, b2, all, accumulation, 1);
    };
    if (!is_folded) {
      return over(of.a.view(), of.b1.view(), of.b2.view());
    }
    part.a = part.b = Format::fp32;
    const reference::Folded tokens = reference::fold_tokens(of.a.view());
    const reference::Folded gate = reference::fold_weights(of.b1.view());
    const reference::Folded up = reference::fold_weights(of.b2.view());
    return over(tokens.view, gate.view, up.view);
  }

  /// Whether the plain computation gives the same infinity or NaN, which is right then, as it is to the judge.
  [[nodiscard]] bool is_plain(double value, const Operands& operands, std::size_t place) const {
    if (std::isfinite(value) || rule_ != Rule::general) {
      return false;
    }
    const double plain = compute(operands, sums_.accumulation, sums_.is_folded).value[place];
    return (std::isnan(value) && std::isnan(plain)) || value == plain;
  }

  DualGemmProblem problem_;
  Rule rule_;
  reference::PlainSums sums_;
  bool has_specials_;
  PlainErrors errors_{};
  double widest_ = 0;  ///< bound of any gauged element, less the rounding to the output format
  double folding_error_ = 0;
};

}  // namespace

std::unique_ptr<Inspector> make_dual_gemm_inspector(const DualGemmProblem& problem, Distribution distribution,
                                                    const std::vector<HostTensor>& inputs, const Maker& maker,
                                                    std::uint64_t seed) {
  return std::make_unique<DualGemmInspector>(problem, distribution, inputs, maker, seed);
}

}  // namespace thresher::arena
