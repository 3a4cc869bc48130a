#include "arena/gemm/mistakes.hpp"

#include <cmath>

#include "reference/activation.hpp"
#include "reference/quantized_output.hpp"

namespace thresher::arena {
namespace {

using ActivationOf = std::optional<Activation>;

/// A mistake and what an output would be if it had been made; NaN where it cannot be made.
struct Hypothesis {
  const char* fault;
  double (*output)(double gate, double up, const ActivationOf& activation, double row_weight);
};

double only_with(const ActivationOf& activation, double value) { return activation ? value : std::nan(""); }

constexpr Hypothesis hypotheses[] = {
    {"gate and up swapped",
     [](double gate, double up, const ActivationOf& activation, double row_weight) {
       return only_with(activation, reference::output_element(up, gate, activation, row_weight));
     }},
    {"A*B1 alone, without activation and up",
     [](double gate, double, const ActivationOf& activation, double row_weight) {
       return only_with(activation, gate * row_weight);
     }},
    {"A*B2 alone, without gate", [](double, double up, const ActivationOf& activation,
                                    double row_weight) { return only_with(activation, up * row_weight); }},
    {"activation of the gate alone, without up",
     [](double gate, double, const ActivationOf& activation, double row_weight) {
       return only_with(activation, reference::output_element(gate, 1, activation, row_weight));
     }},
    {"activation left out", [](double gate, double up, const ActivationOf& activation,
                               double row_weight) { return only_with(activation, gate * up * row_weight); }},
    {"row weights left out", [](double gate, double up, const ActivationOf& activation,
                                double) { return reference::output_element(gate, up, activation); }},
};

/// Every judged element with its place.
template <class Visit>
void for_each(const JudgedOutputs& part, const Visit& visit) {
  std::size_t i = 0;
  for (const std::int64_t row : part.region.rows) {
    for (const std::int64_t column : part.region.columns) {
      visit(row, i++, reference::output_value(part.c, part.of.first_row + row, column));
    }
  }
}

/// Whether the output is, but for rounding, what the mistake would give. Where mistake and definition agree nothing is
/// learned, so the output must be nearer to the mistake by far.
bool explains(const Hypothesis& hypothesis, std::span<const JudgedOutputs> parts) {
  double from_mistake = 0;
  double from_reference = 0;
  for (const JudgedOutputs& part : parts) {
    for_each(part, [&](std::int64_t row, std::size_t i, double value) {
      const double mistake =
          hypothesis.output(part.reference.gate[i], part.reference.up[i], part.of.activation, part.of.row_weight(row));
      if (std::isfinite(value) && std::isfinite(mistake) && std::isfinite(part.reference.value[i])) {
        from_mistake += std::pow(value - mistake, 2);
        from_reference += std::pow(value - part.reference.value[i], 2);
      }
    });
  }
  return from_mistake < 1e-3 * from_reference;
}

}  // namespace

std::string mistake_in(std::span<const JudgedOutputs> parts) {
  for (const Hypothesis& hypothesis : hypotheses) {
    if (explains(hypothesis, parts)) {
      return hypothesis.fault;
    }
  }
  return {};
}

std::string fault_of(const reference::Verdict& verdict, std::int64_t last_row, std::int64_t last_column) {
  if (verdict.wrong == 1) {
    return verdict.worst.row == last_row || verdict.worst.column == last_column ? "one element off at the ragged edge"
                                                                                : "one element off";
  }
  const bool is_one_tile = verdict.wrong == verdict.worst_tile.wrong && verdict.worst_tile.elements < verdict.elements;
  return is_one_tile ? one_tile_wrong : wrong_values;
}

JudgeEvidence evidence_of(const reference::Verdict& verdict, std::int64_t elements) {
  const auto count = [](auto value) { return static_cast<std::int64_t>(value); };
  return {std::string(reference::name(verdict.rule)),
          {{"judged", count(verdict.elements)}, {"of", elements}, {"wrong", count(verdict.wrong)}},
          {{"worst_element",
            {{"row", verdict.worst.row},
             {"column", verdict.worst.column},
             {"value", verdict.worst.value},
             {"reference", verdict.worst.reference},
             {"bound", verdict.worst.bound},
             {"error_over_bound", verdict.worst.ratio}}},
           {"worst_tile",
            {{"row", verdict.worst_tile.row},
             {"column", verdict.worst_tile.column},
             {"wrong", count(verdict.worst_tile.wrong)},
             {"judged", count(verdict.worst_tile.elements)},
             {"relative_error", verdict.worst_tile.relative_error}}}}};
}

std::vector<double> values_of(const JudgedOutputs& part) {
  std::vector<double> values;
  for_each(part, [&](std::int64_t, std::size_t, double value) { values.push_back(value); });
  return values;
}

}  // namespace thresher::arena
