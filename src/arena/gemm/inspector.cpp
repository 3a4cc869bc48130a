#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arena/gemm/comparison.hpp"
#include "arena/gemm/judge.hpp"
#include "arena/gemm/judged_call.hpp"
#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "reference/output_format.hpp"
#include "reference/quantized_output.hpp"

namespace thresher::arena {
namespace {

using reference::Accumulation;
using reference::GroupedCall;
using reference::GroupRegion;
using reference::Outputs;
using reference::PlainErrors;
using reference::Rule;

constexpr std::size_t gauged_rows = 24;
constexpr std::int64_t gauged_columns = 64;
/// Neighbouring elements of a look, and how many of them are computed.
constexpr std::int64_t columns_of_a_look = 64;
constexpr std::size_t judged_of_a_look = 2;
/// The largest error of a few elements is a little less than that of all, and less still where there are several
/// experts with scales of their own.
double beyond_the_gauge(const ProductTask& task) { return task.is_dual_gemm() ? 1.5 : 2.5; }

class ProductInspector final : public Inspector {
 public:
  ProductInspector(const ProductTask& task, Distribution distribution, const std::vector<HostTensor>& inputs,
                   const Maker& maker, std::uint64_t seed)
      : task_(task),
        comparison_{.rule = product_rule(task, distribution),
                    .out = task.problem.out,
                    .is_folded = plain_sums(task, maker).is_folded,
                    .has_specials = distribution == Distribution::specials,
                    .widest = 0,
                    .folding_error = 0},
        accumulation_(plain_sums(task, maker).accumulation) {
    if (plain_sums(task, maker).is_short()) {
      comparison_.rule = Rule::general;
    }
    if (comparison_.rule == Rule::general) {
      Random random(seed);
      gauge(judged_call(task, pointers_to(inputs)), random);
      if (task.problem.out == Format::fp8_tensor) {
        comparison_.widest /= min_given_scale;
      }
    }
  }

  [[nodiscard]] Look choose(Random& random) const override {
    const GroupedProblem& p = task_.problem;
    const bool has_scales = format_traits(p.out).is_quantized_output() && format_traits(p.out).has_scales();
    const std::int64_t shared = has_scales ? reference::columns_per_scale(p.out, p.n) : 1;
    const std::int64_t columns = has_scales ? shared : std::min(columns_of_a_look, p.n);
    const std::int64_t rows = p.layout == RowLayout::slots ? p.experts * p.rows : p.rows;
    const std::int64_t row = random.index(rows);
    Look look{{{0, row, random.index((p.n - columns) / shared + 1) * shared, columns}}, {}};
    if (has_scales) {
      look.parts.push_back({1, look.parts[0].row, look.parts[0].first_column / shared, 1});
    }
    for (std::size_t i = 0; i < judged_of_a_look; ++i) {
      look.place.push_back(random.index(columns));
    }
    return look;
  }

  [[nodiscard]] std::string fault_in(const Look& look, const InputsOfCall& inputs, std::uint8_t poison) const override {
    const RowPart& part = look.parts.front();
    if (format_traits(comparison_.out).is_quantized_output()) {
      return fault_in_quantized(look, inputs, poison);
    }
    std::vector<std::uint8_t> bytes = part.bytes;
    const Tensor there = Tensor::contiguous(bytes.data(), comparison_.out, {1, part.columns});
    const std::size_t element_bytes = bytes.size() / static_cast<std::size_t>(part.columns);
    const auto holds_poison = [&](std::int64_t column) {
      return is_poison(&bytes[static_cast<std::size_t>(column) * element_bytes], element_bytes, poison);
    };
    const GroupedCall call = judged_call(task_, inputs);
    if (call.owned.tokens[static_cast<std::size_t>(part.row)] < 0) {
      return is_poison(bytes.data(), bytes.size(), poison)
                 ? ""
                 : fmt::format("row {} of c belongs to nobody and was written", part.row);
    }
    std::vector<std::int64_t> judged;
    for (std::int64_t column = 0; column < part.columns && judged.size() < judged_of_a_look; ++column) {
      if (holds_poison(column)) {
        judged.push_back(column);
      }
    }
    judged.insert(judged.end(), look.place.begin(), look.place.end());
    judged.resize(judged_of_a_look);
    GroupRegion region = region_of(call, part.row);
    for (const std::int64_t column : judged) {
      region.region.columns.push_back(part.first_column + column);
    }
    const Outputs definition = grouped_outputs(call, region, Accumulation::float64, numerics(), 1);
    const reference::OutputMatrix of = output_of(call, region.expert);
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const double value = formats::element(there, 0, judged[i]);
      const double wanted = definition.value[i];
      const double bound = reference::bound_for(of, comparison_.rule, region.region.rows.front(), definition.gate[i],
                                                definition.up[i], errors_);
      if (reference::error_ratio(comparison_.rule, of.out, value, wanted, bound) > 1 &&
          !is_plain(value, call, region, i)) {
        const std::int64_t column = region.region.columns[i];
        return holds_poison(judged[i])
                   ? fmt::format("c[{}, {}] was not written, the definition gives {}", part.row, column, wanted)
                   : fmt::format("c[{}, {}] is {}, the definition gives {} ± {:.3g}", part.row, column, value, wanted,
                                 bound);
      }
    }
    return {};
  }

  [[nodiscard]] std::string fault_against(const std::vector<HostTensor>& outputs,
                                          const std::vector<HostTensor>& trusted) const override {
    return comparison_.fault(as_matrix(outputs), as_matrix(trusted));
  }

 private:
  /// Checks a dynamic scale of an FP8 output and all that it multiplies, or some values under a static scale.
  [[nodiscard]] std::string fault_in_quantized(const Look& look, const InputsOfCall& inputs,
                                               std::uint8_t poison) const {
    const RowPart& part = look.parts.front();
    const GroupedCall call = judged_call(task_, inputs);
    if (call.owned.tokens[static_cast<std::size_t>(part.row)] < 0) {
      const bool is_left = std::all_of(look.parts.begin(), look.parts.end(), [&](const RowPart& of) {
        return is_poison(of.bytes.data(), of.bytes.size(), poison);
      });
      return is_left ? "" : fmt::format("row {} of c belongs to nobody and was written", part.row);
    }
    const bool has_scales = look.parts.size() > 1;
    GroupRegion region = region_of(call, part.row);
    for (std::int64_t column = 0; column < part.columns; ++column) {
      if (has_scales || std::find(look.place.begin(), look.place.end(), column) != look.place.end()) {
        region.region.columns.push_back(part.first_column + column);
      }
    }
    const std::vector<reference::ValueRange> ranges = ranges_of(call, region);
    const double scale = scale_of(look, inputs, region.expert);
    Tensor of_format;
    of_format.format = comparison_.out;
    if (has_scales) {
      if (const reference::ScaleRange right = reference::right_scales(of_format, ranges); !right.holds(scale)) {
        return fmt::format("the scale of c[{}, {}] is {}, the definition gives {} to {}", part.row, part.first_column,
                           scale, right.low, right.high);
      }
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::int64_t column = region.region.columns[i];
      const std::uint8_t code = part.bytes[static_cast<std::size_t>(column - part.first_column)];
      const double value = static_cast<double>(formats::e4m3_to_float(code)) * scale;
      const reference::NumberRange right = reference::right_numbers(comparison_.out, ranges[i], scale);
      if (!right.holds(value)) {
        return fmt::format("c[{}, {}] is {}{}, the definition gives {} to {}", part.row, column, value,
                           code == poison ? ", or was not written" : "", right.low, right.high);
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<reference::ValueRange> ranges_of(const GroupedCall& call, const GroupRegion& region) const {
    const Outputs definition = grouped_outputs(call, region, Accumulation::float64, numerics(), 1);
    const Outputs plain = comparison_.has_specials && comparison_.rule == Rule::general
                              ? grouped_outputs(call, region, accumulation_, numerics(), 1)
                              : definition;
    const reference::OutputMatrix of = output_of(call, region.expert);
    std::vector<reference::ValueRange> ranges;
    for (std::size_t i = 0; i < definition.value.size(); ++i) {
      const double value = definition.value[i];
      const double bound = std::isfinite(value) ? reference::bound_for(of, comparison_.rule, region.region.rows.front(),
                                                                       definition.gate[i], definition.up[i], errors_)
                                                : 0.0;
      const bool is_same = value == plain.value[i] || (std::isnan(value) && std::isnan(plain.value[i]));
      ranges.push_back({.low = value - bound,
                        .high = value + bound,
                        .is_nan = std::isnan(value),
                        .is_unknown = !std::isfinite(plain.value[i]) && !is_same});
    }
    return ranges;
  }

  /// The dynamic scale beside the values, or the static one; masked: of each expert.
  [[nodiscard]] double scale_of(const Look& look, const InputsOfCall& inputs, std::int64_t expert) const {
    float scale = 1.0F;
    if (look.parts.size() > 1) {
      std::memcpy(&scale, look.parts[1].bytes.data(), sizeof scale);
    } else if (const Tensor given = find_in(inputs)("c_scale"); given.rank > 0) {
      scale = static_cast<const float*>(given.data)[given.shape[0] > 1 ? expert : 0];
    }
    return static_cast<double>(scale);
  }

  [[nodiscard]] Tensor as_matrix(const std::vector<HostTensor>& outputs) const {
    const HostTensor& output = outputs.at(0);
    const std::int64_t columns = output.shape.back();
    Tensor matrix = Tensor::contiguous(output.view().data, comparison_.out,
                                       {output.elements() / std::max<std::int64_t>(columns, 1), columns});
    if (outputs.size() > 1) {
      matrix.scales.data = outputs[1].view().data;
      matrix.describe_scales(OperandRole::tokens);
    }
    return matrix;
  }

  /// Whether the plain computation gives the same infinity or NaN, which is right then, as it is to the judge.
  [[nodiscard]] bool is_plain(double value, const GroupedCall& call, const GroupRegion& region,
                              std::size_t place) const {
    if (std::isfinite(value) || comparison_.rule != Rule::general) {
      return false;
    }
    const double plain = grouped_outputs(call, region, accumulation_, numerics(), 1).value[place];
    return (std::isnan(value) && std::isnan(plain)) || value == plain;
  }

  [[nodiscard]] Numerics numerics() const { return comparison_.is_folded ? Numerics::fast : Numerics::exact; }

  /// The row of C among those of its expert.
  static GroupRegion region_of(const GroupedCall& call, std::int64_t row) {
    for (std::size_t expert = 0; expert < call.owned.groups.size(); ++expert) {
      const reference::GroupRows& group = call.owned.groups[expert];
      if (row >= group.first && row < group.end()) {
        return {static_cast<std::int64_t>(expert), {{row - group.first}, {}}};
      }
    }
    return {};
  }

  /// The largest errors of a plain computation in some rows and columns.
  void gauge(const GroupedCall& call, Random& random) {
    std::vector<std::int64_t> owned;
    for (std::size_t row = 0; row < call.owned.tokens.size(); ++row) {
      if (call.owned.tokens[row] >= 0) {
        owned.push_back(static_cast<std::int64_t>(row));
      }
    }
    random.shuffle(owned);
    owned.resize(std::min(owned.size(), gauged_rows));
    std::vector<double> values;
    std::vector<double> exact;
    std::vector<std::pair<GroupRegion, Outputs>> definitions;
    for (const std::int64_t row : owned) {
      GroupRegion region = region_of(call, row);
      const std::int64_t columns = std::min(gauged_columns, task_.problem.n);
      const std::int64_t first = random.index(task_.problem.n - columns + 1);
      for (std::int64_t column = 0; column < columns; ++column) {
        region.region.columns.push_back(first + column);
      }
      Outputs definition = grouped_outputs(call, region, Accumulation::float64, numerics());
      raise(reference::plain_errors(task_.problem.activation, definition,
                                    grouped_outputs(call, region, accumulation_, numerics())));
      if (comparison_.is_folded) {
        const Outputs of_exact = grouped_outputs(call, region, Accumulation::float64);
        exact.insert(exact.end(), of_exact.value.begin(), of_exact.value.end());
        values.insert(values.end(), definition.value.begin(), definition.value.end());
      }
      definitions.emplace_back(std::move(region), std::move(definition));
    }
    for (double* const error : {&errors_.gate, &errors_.up, &errors_.activation}) {
      *error *= beyond_the_gauge(task_);
    }
    for (const auto& [region, definition] : definitions) {
      const reference::OutputMatrix of = output_of(call, region.expert);
      for (std::size_t i = 0; i < definition.value.size(); ++i) {
        const double bound = reference::bound_for(of, comparison_.rule, region.region.rows.front(), definition.gate[i],
                                                  definition.up[i], errors_) -
                             2 * reference::ulp(of.out, definition.value[i]);
        comparison_.widest = std::isfinite(bound) ? std::max(comparison_.widest, bound) : comparison_.widest;
      }
    }
    comparison_.folding_error = distance(values, exact);
  }

  void raise(const PlainErrors& to) {
    errors_.gate = std::max(errors_.gate, to.gate);
    errors_.up = std::max(errors_.up, to.up);
    errors_.activation = std::max(errors_.activation, to.activation);
  }

  ProductTask task_;
  OutputComparison comparison_;
  Accumulation accumulation_;  ///< of the plain computation
  PlainErrors errors_{};
};

}  // namespace

std::unique_ptr<Inspector> make_product_inspector(const ProductTask& task, Distribution distribution,
                                                  const std::vector<HostTensor>& inputs, const Maker& maker,
                                                  std::uint64_t seed) {
  return std::make_unique<ProductInspector>(task, distribution, inputs, maker, seed);
}

}  // namespace thresher::arena
