#include "reference/moe_layer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "core/grouped_weights.hpp"
#include "formats/decode.hpp"
#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/quantize_row.hpp"
#include "reference/grouped_judgement.hpp"
#include "reference/output_format.hpp"
#include "reference/parallel.hpp"
#include "reference/plain_sums.hpp"
#include "reference/quantized_output.hpp"

namespace thresher::reference {
namespace {

constexpr double float32_half_ulp = 0x1p-24;

/// BoundedRows of one product, row-major: the definition, and how far each element may lie from it.
struct BoundedRows {
  std::int64_t columns = 0;
  std::vector<double> value;
  std::vector<double> bound;

  BoundedRows(std::int64_t rows, std::int64_t columns_of)
      : columns(columns_of),
        value(static_cast<std::size_t>(rows * columns)),
        bound(static_cast<std::size_t>(rows * columns)) {}
  [[nodiscard]] std::size_t at(std::int64_t row, std::int64_t column = 0) const {
    return static_cast<std::size_t>(row * columns + column);
  }
};

/// A number beyond the range of its format becomes an infinity.
double in_range_of(Format format, double value) {
  const double rounded = round_to(format, value);
  return std::isinf(rounded) ? rounded : value;
}

/// The device whose accumulation the tolerance is for, and the number of threads of the computation.
struct On {
  DeviceKind device = DeviceKind::cpu;
  int threads = 0;
};

/// The definition of some columns of one expert's rows from the operands in memory, and bounds from a plain computation
/// on `device`.
struct Product {
  Outputs reference;
  std::vector<double> bound;
};
Product product(const GroupedCall& call, std::int64_t expert, const std::vector<std::int64_t>& columns, On on) {
  const PlainSums sums = plain_sums(call.problem.a, call.problem.b, Numerics::exact, on.device);
  const OutputMatrix of = output_of(call, expert);
  const GroupRegion part{expert, {whole(of.m, 0).rows, columns}};
  Product made{.reference = grouped_outputs(call, part, Accumulation::float64, Numerics::exact, on.threads),
               .bound = {}};
  const PlainErrors errors = plain_errors(call.problem.activation, made.reference,
                                          grouped_outputs(call, part, sums.accumulation, Numerics::exact, on.threads));
  for (std::size_t i = 0; i < made.reference.value.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / std::ssize(columns);
    made.bound.push_back(bound_for(of, Rule::general, row, made.reference.gate[i], made.reference.up[i], errors));
  }
  return made;
}

Tensor list(std::vector<std::int32_t>& values) {
  return Tensor::contiguous(values.data(), Format::int32, {std::ssize(values)});
}

/// `sorted_choices` for only the region's tokens: all other assignments are skipped.
SortedChoices choices_of(const MoeCall& call, const Region& region) {
  const std::int64_t top_k = call.problem.top_k;
  Tensor ids = call.tensors.topk_ids;
  const auto* const all = static_cast<const std::int32_t*>(ids.data);
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(ids.elements()), -1);
  for (const std::int64_t token : region.rows) {
    std::copy_n(all + token * top_k, top_k, chosen.begin() + token * top_k);
  }
  ids.data = chosen.data();
  SortedChoices sorted = sorted_choices(call.problem, ids);
  sorted.row_ids.resize(static_cast<std::size_t>(sorted.offsets.back()));  // later entries are unassigned
  return sorted;
}

/// Memory for the rows of grouped calls; its initial content does not count unless stated.
struct Room {
  std::vector<std::byte> bytes;
  std::vector<std::byte> scales;
  float global_scale;
  Tensor tensor;

  Room(Format format, std::int64_t rows, std::int64_t columns, float scale = 1.0F)
      : bytes(static_cast<std::size_t>(rows * columns * bits(format) / 8)),
        scales(scale_bytes(format, OperandRole::tokens, rows, columns, ScaleLayout::row_major)),
        global_scale(scale),
        tensor(Tensor::contiguous(bytes.data(), format, {rows, columns})) {
    if (format_traits(format).is_quantized_output()) {
      tensor.scales.data = scales.data();
      tensor.describe_scales(OperandRole::tokens);
      tensor.global_scale = format == Format::fp8_tensor || format == Format::nvfp4 ? &global_scale : nullptr;
    }
  }
  Room(const Room&) = delete;
};

std::int64_t rows_of(const SortedChoices& choices, std::int64_t expert) {
  const auto at = static_cast<std::size_t>(expert);
  return choices.offsets[at + 1] - choices.offsets[at];
}

BoundedRows intermediates(const MoeCall& call, SortedChoices& choices, On on) {
  GroupedProblem problem = gate_up_problem(call.problem);
  problem.tokens = call.tensors.x.shape[0];
  problem.rows = std::ssize(choices.row_ids);
  BoundedRows rows(problem.rows, problem.n);
  const std::vector<std::int64_t> all_columns = whole(0, problem.n).columns;
  Room unused(problem.out, problem.rows, problem.n);
  const GroupedCall gate_up = grouped_call(
      problem, call.gate_up,
      {.a = call.tensors.x, .c = unused.tensor, .offsets = list(choices.offsets), .row_ids = list(choices.row_ids)});
  for (std::int64_t expert = 0; expert < problem.experts; ++expert) {
    if (rows_of(choices, expert) == 0) {
      continue;
    }
    const Product made = product(gate_up, expert, all_columns, on);
    const std::size_t first = rows.at(choices.offsets[static_cast<std::size_t>(expert)]);
    std::copy(made.bound.begin(), made.bound.end(), rows.bound.begin() + static_cast<std::ptrdiff_t>(first));
    std::transform(made.reference.value.begin(), made.reference.value.end(),
                   rows.value.begin() + static_cast<std::ptrdiff_t>(first),
                   [&](double value) { return in_range_of(problem.out, value); });
  }
  return rows;
}

/// A row of one expert's matrix in float64, including its global scale.
std::vector<double> row_of_down(const Tensor& matrix, std::int64_t row) {
  std::vector<double> values(static_cast<std::size_t>(matrix.shape[1]));
  formats::decode_row(matrix, row, values);
  for (double& value : values) {
    value *= formats::global_scale(matrix);
  }
  return values;
}

/// Takes the values of one row from `first` on that share a scale: those of the definition, which are in the buffer,
/// and the allowed distance of a right value under a right scale.
void take_quantized(const Room& room, BoundedRows& rows, std::int64_t row, std::int64_t first, std::int64_t count) {
  std::vector<ValueRange> values;
  for (std::int64_t column = first; column < first + count; ++column) {
    const std::size_t at = rows.at(row, column);
    values.push_back({.low = rows.value[at] - rows.bound[at],
                      .high = rows.value[at] + rows.bound[at],
                      .is_nan = std::isnan(rows.value[at])});
  }
  const Format format = room.tensor.format;
  const double given = static_cast<double>(room.global_scale);
  ScaleRange scales{.low = 1.0, .high = 1.0};
  if (format_traits(format).has_scales()) {
    scales = right_scales(room.tensor, values);
  }
  for (std::int64_t column = first; column < first + count; ++column) {
    const std::size_t at = rows.at(row, column);
    const NumberRange right = right_numbers(format, values[static_cast<std::size_t>(column - first)],
                                            scales.low * given, scales.high * given);
    rows.value[at] = output_value(room.tensor, row, column);
    rows.bound[at] = std::max(right.high - rows.value[at], rows.value[at] - right.low);
  }
}

void quantize_output_into(Room& room, BoundedRows& rows) {
  const std::int64_t shared = columns_per_scale(room.tensor.format, rows.columns);
  std::vector<float> of_row(static_cast<std::size_t>(rows.columns));
  for (std::int64_t row = 0; row < room.tensor.shape[0]; ++row) {
    std::transform(rows.value.begin() + static_cast<std::ptrdiff_t>(rows.at(row)),
                   rows.value.begin() + static_cast<std::ptrdiff_t>(rows.at(row + 1)), of_row.begin(),
                   [](double value) { return static_cast<float>(value); });
    formats::quantize_row(room.tensor, row, of_row);
    for (std::int64_t first = 0; first < rows.columns; first += shared) {
      take_quantized(room, rows, row, first, std::min(shared, rows.columns - first));
    }
  }
}

void round_into(Room& room, const BoundedRows& rows) {
  for (std::size_t i = 0; i < rows.value.size(); ++i) {
    const auto value = static_cast<float>(rows.value[i]);
    auto* const patterns = reinterpret_cast<std::uint16_t*>(room.bytes.data());
    patterns[i] = room.tensor.format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
  }
}

/// The error of an output caused by errors of the intermediate within their bounds. Roundings are many and independent:
/// the root of the sum of their squares. In a quantized output few values differ from the definition's: their sum.
double carried(std::span<const double> weights, const double* bounds, bool is_quantized_output) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double error = std::fabs(weights[i] * bounds[i]);
    sum += !std::isfinite(error) ? 0 : is_quantized_output ? error : error * error;
  }
  return is_quantized_output ? sum : std::sqrt(sum);
}

double bias_of(const Tensor& bias, std::int64_t expert, std::int64_t column) {
  return bias.rank == 0 ? 0.0 : formats::element(bias, expert, column);
}

/// The rows that the layer combines, in the region's columns.
BoundedRows outputs_of_down(const MoeCall& call, SortedChoices& choices, BoundedRows hidden, const Region& region,
                            On on) {
  GroupedProblem problem = down_problem(call.problem);
  problem.rows = std::ssize(choices.row_ids);
  BoundedRows rows(problem.rows, std::ssize(region.columns));
  Room rounded(problem.a, problem.rows, problem.k, call.problem.intermediate_scale);
  const bool is_quantized_output = format_traits(problem.a).is_quantized_output();
  if (is_quantized_output) {
    quantize_output_into(rounded, hidden);
  } else {
    round_into(rounded, hidden);
  }
  Room unused(problem.out, problem.rows, problem.n);
  const GroupedCall down =
      grouped_call(problem, call.down, {.a = rounded.tensor, .c = unused.tensor, .offsets = list(choices.offsets)});
  for (std::int64_t expert = 0; expert < problem.experts; ++expert) {
    if (rows_of(choices, expert) == 0) {
      continue;
    }
    const Product of_rounded = product(down, expert, region.columns, on);
    const Tensor matrix = slot_matrix(call.down.b1, expert);
    const std::int64_t first = choices.offsets[static_cast<std::size_t>(expert)];
    parallel_for(rows.columns, on.threads, [&](std::int64_t place) {
      const std::int64_t column = region.columns[static_cast<std::size_t>(place)];
      const std::vector<double> weights = row_of_down(matrix, column);
      const double bias = bias_of(call.down.bias1, expert, column);
      for (std::int64_t row = 0; row < rows_of(choices, expert); ++row) {
        const std::size_t of = hidden.at(first + row);
        const std::size_t at = rows.at(first + row, place);
        const double sum = std::inner_product(weights.begin(), weights.end(), hidden.value.data() + of, bias);
        rows.value[at] = in_range_of(problem.out, sum);
        rows.bound[at] = of_rounded.bound[static_cast<std::size_t>(row * rows.columns + place)] +
                         carried(weights, hidden.bound.data() + of, is_quantized_output);
      }
    });
  }
  return rows;
}

/// The evidence of one output.
ElementEvidence compared(const Tensor& out, std::int64_t row, std::int64_t column, double reference, double bound) {
  ElementEvidence element{
      row, column, formats::element(out, row, column), reference, std::isfinite(reference) ? bound : 0.0, 0.0};
  element.ratio = error_ratio(Rule::general, out.format, element.value, reference, element.bound);
  return element;
}

}  // namespace

SortedChoices sorted_choices(const MoeProblem& problem, const Tensor& topk_ids) {
  const std::span<const std::int32_t> ids(static_cast<const std::int32_t*>(topk_ids.data),
                                          static_cast<std::size_t>(topk_ids.elements()));
  SortedChoices sorted;
  sorted.inverse.assign(ids.size(), -1);
  for (std::int64_t expert = 0; expert < problem.experts; ++expert) {
    sorted.offsets.push_back(static_cast<std::int32_t>(sorted.row_ids.size()));
    for (std::size_t choice = 0; choice < ids.size(); ++choice) {
      if (ids[choice] == expert) {
        sorted.inverse[choice] = static_cast<std::int32_t>(sorted.row_ids.size());
        sorted.row_ids.push_back(static_cast<std::int32_t>(choice));
      }
    }
  }
  sorted.offsets.push_back(static_cast<std::int32_t>(sorted.row_ids.size()));
  sorted.row_ids.resize(ids.size(), -1);
  return sorted;
}

MoeOutputs moe_layer(const MoeCall& call, const Region& region, DeviceKind device, int threads) {
  const MoeProblem& problem = call.problem;
  const On on{device, threads};
  SortedChoices choices = choices_of(call, region);
  const BoundedRows rows = outputs_of_down(call, choices, intermediates(call, choices, on), region, on);
  const auto* const weights = static_cast<const float*>(call.tensors.topk_weights.data);
  MoeOutputs outputs;
  for (const std::int64_t token : region.rows) {
    for (std::int64_t column = 0; column < rows.columns; ++column) {
      double value = 0;
      double bound = 0;
      double magnitude = 0;
      double unweighted = 0;
      for (std::int64_t choice = token * problem.top_k; choice < (token + 1) * problem.top_k; ++choice) {
        const std::int32_t row = choices.inverse[static_cast<std::size_t>(choice)];
        if (row >= 0) {
          const std::size_t at = rows.at(row, column);
          const double weight = weights[choice];
          value += weight * rows.value[at];
          bound += std::fabs(weight) * rows.bound[at];
          magnitude += std::fabs(weight * rows.value[at]);
          unweighted += rows.value[at];
        }
      }
      outputs.value.push_back(value);
      outputs.unweighted.push_back(unweighted);
      outputs.bound.push_back(bound + 2 * static_cast<double>(problem.top_k) * float32_half_ulp * magnitude +
                              ulp(problem.out, value));
    }
  }
  return outputs;
}

Verdict judge_moe_outputs(const Tensor& out, const Region& region, const MoeOutputs& wanted) {
  Verdict verdict;
  verdict.elements = region.elements();
  double ratios = 0;
  double errors = 0;
  double references = 0;
  for (std::size_t i = 0; i < wanted.value.size(); ++i) {
    const std::size_t columns = region.columns.size();
    const ElementEvidence element =
        compared(out, region.rows[i / columns], region.columns[i % columns], wanted.value[i], wanted.bound[i]);
    verdict.wrong += element.ratio > 1.0 ? 1 : 0;
    if (verdict.worst.row < 0 || element.ratio > verdict.worst.ratio) {
      verdict.worst = element;
    }
    ratios += element.ratio * element.ratio;
    if (std::isfinite(element.value) && std::isfinite(element.reference)) {
      errors += std::pow(element.value - element.reference, 2);
      references += std::pow(element.reference, 2);
    }
  }
  verdict.passed = verdict.wrong == 0;
  if (verdict.elements > 0) {
    verdict.worst_tile = {.row = region.rows.front(),
                          .column = region.columns.front(),
                          .elements = verdict.elements,
                          .wrong = verdict.wrong,
                          .rms_ratio = std::sqrt(ratios / static_cast<double>(verdict.elements)),
                          .relative_error = errors == 0.0 ? 0.0 : std::sqrt(errors / references)};
  }
  return verdict;
}

Verdict judge_moe_layer(const MoeCall& call, DeviceKind device) {
  const MoeProblem& problem = call.problem;
  const Tensor& out = call.tensors.out;
  formats::check_matrix(out, "out", out.shape[0], problem.hidden_size, problem.out);
  const Region all = whole(out.shape[0], problem.hidden_size);
  return judge_moe_outputs(out, all, moe_layer(call, all, device));
}

MoeProblem layer_of_one_expert(const GatedMlpProblem& problem) {
  return {.experts = 1,
          .tokens = problem.tokens,
          .top_k = 1,
          .hidden_size = problem.hidden_size,
          .intermediate_size = problem.intermediate_size,
          .x = problem.x,
          .gate_up = problem.gate_up,
          .intermediate = problem.intermediate,
          .intermediate_scale = problem.intermediate_scale,
          .down = problem.down,
          .rows = Format::fp32,  // the combined row is the sum itself
          .out = problem.out,
          .activation = problem.activation};
}

Verdict judge_gated_mlp(const GatedMlpProblem& problem, const GatedMlpWeights& weights, const Tensor& x,
                        const Tensor& out, DeviceKind device) {
  const std::int64_t tokens = x.shape[0];
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens), 0);
  std::vector<float> ones(static_cast<std::size_t>(tokens), 1.0F);
  MoeProblem layer = layer_of_one_expert(problem);
  layer.tokens = tokens;
  return judge_moe_layer({.problem = layer,
                          .gate_up = is_gated(problem.activation) ? GroupedWeights{.b1 = stack_of_one(weights.gate),
                                                                                   .b2 = stack_of_one(weights.up)}
                                                                  : GroupedWeights{.b1 = stack_of_one(weights.up)},
                          .down = {.b1 = stack_of_one(weights.down)},
                          .tensors = {.x = x,
                                      .topk_ids = Tensor::contiguous(ids.data(), Format::int32, {tokens, 1}),
                                      .topk_weights = Tensor::contiguous(ones.data(), Format::fp32, {tokens, 1}),
                                      .out = out}},
                         device);
}

}  // namespace thresher::reference
