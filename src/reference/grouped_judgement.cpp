#include "reference/grouped_judgement.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "reference/fold.hpp"
#include "reference/output_format.hpp"
#include "reference/quantized_output.hpp"

namespace thresher::reference {
namespace {

const GroupRows& group_of(const GroupedCall& call, std::int64_t expert) {
  return call.owned.groups[static_cast<std::size_t>(expert)];
}

void drop_skipped(const GroupedCall& call, std::int64_t expert, std::vector<std::int64_t>& rows) {
  const std::int64_t first = group_of(call, expert).first;
  std::erase_if(rows, [&](std::int64_t row) { return call.owned.tokens[static_cast<std::size_t>(first + row)] < 0; });
}

template <class Choose>
std::vector<GroupRegion> regions(const GroupedCall& call, const Choose& choose) {
  std::vector<GroupRegion> parts;
  for (std::int64_t expert = 0; expert < call.problem.experts; ++expert) {
    GroupRegion part{expert, choose(group_of(call, expert).count, expert)};
    drop_skipped(call, expert, part.region.rows);
    if (part.region.elements() > 0) {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

/// Some rows of an operand, quantized for numerics `fast` if requested.
class Rows {
 public:
  Rows(const Tensor& matrix, std::vector<std::int64_t> rows) : matrix_(matrix), rows_(std::move(rows)) {}

  void fold(bool is_weight) {
    folded_ = is_weight ? fold_weights(matrix_, rows_) : fold_tokens(matrix_, rows_);
    matrix_ = folded_->view;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i] = static_cast<std::int64_t>(i);
    }
  }
  [[nodiscard]] SomeRows some() const { return {matrix_, rows_}; }

 private:
  Tensor matrix_;
  std::vector<std::int64_t> rows_;
  std::optional<Folded> folded_;
};

Rows tokens_of(const GroupedCall& call, const GroupRegion& part) {
  const Tensor& a = call.tensors.a;
  if (a.rank == 3) {
    return {slot_matrix(a, part.expert), part.region.rows};
  }
  std::vector<std::int64_t> rows;
  for (const std::int64_t row : part.region.rows) {
    rows.push_back(call.owned.tokens[static_cast<std::size_t>(group_of(call, part.expert).first + row)]);
  }
  return {a, std::move(rows)};
}

Rows weights_of(const Tensor& view, const GroupRegion& part) {
  const ExpertMatrix of = expert_matrix(view, part.expert);
  std::vector<std::int64_t> rows = part.region.columns;
  for (std::int64_t& row : rows) {
    row *= of.row_step;
  }
  return {of.matrix, std::move(rows)};
}

/// The biases of the region's columns; zeros without biases.
std::vector<double> biases_of(const Tensor& view, const GroupRegion& part) {
  std::vector<double> values(part.region.columns.size(), 0.0);
  for (std::size_t i = 0; i < values.size() && view.rank > 0; ++i) {
    Tensor one = view;
    one.strides = {view.strides[0], 1};
    values[i] = formats::element(one, part.expert, part.region.columns[i] * view.strides[1]);
  }
  return values;
}

/// A product with its bias, in the precision of the accumulators.
double with_bias(double product, double bias, Accumulation accumulation) {
  return accumulation == Accumulation::float64
             ? product + bias
             : static_cast<double>(static_cast<float>(product) + static_cast<float>(bias));
}

}  // namespace

GroupedCall grouped_call(const GroupedProblem& problem, const GroupedWeights& weights, const GroupedTensors& tensors) {
  return {problem, weight_views(weights), tensors, owned_rows(problem, tensors)};
}

std::vector<GroupRegion> whole(const GroupedCall& call) {
  return regions(call, [&](std::int64_t rows, std::int64_t) { return whole(rows, call.problem.n); });
}

std::vector<GroupRegion> sample_every_tile(const GroupedCall& call, std::int64_t per_tile, std::uint64_t seed) {
  return regions(call, [&](std::int64_t rows, std::int64_t expert) {
    return with_whole_scales(
        sample_every_tile(rows, call.problem.n, per_tile, seed + static_cast<std::uint64_t>(expert)), call.problem.out,
        call.problem.n);
  });
}

Outputs grouped_outputs(const GroupedCall& call, const GroupRegion& part, Accumulation accumulation, Numerics numerics,
                        int threads) {
  const bool has_up = is_gated(call.problem.activation);
  Rows a = tokens_of(call, part);
  Rows gate = weights_of(call.weights.gate, part);
  std::optional<Rows> up = has_up ? std::optional(weights_of(call.weights.up, part)) : std::nullopt;
  if (numerics == Numerics::fast) {
    a.fold(false);
    gate.fold(true);
    if (up) {
      up->fold(true);
    }
  }
  const std::vector<double> gate_bias = biases_of(call.weights.gate_bias, part);
  const std::vector<double> up_bias = biases_of(call.weights.up_bias, part);
  const OutputMatrix of = output_of(call, part.expert);
  const auto elements = static_cast<std::size_t>(part.region.elements());
  Outputs out{std::vector<double>(elements), std::vector<double>(elements), std::vector<double>(elements)};
  const std::optional<SomeRows> of_up = up ? std::optional<SomeRows>(up->some()) : std::nullopt;
  products(a.some(), gate.some(), of_up ? &*of_up : nullptr, accumulation, threads,
           [&](std::size_t row, std::size_t column, double gate_product, double up_product) {
             const std::size_t at = row * part.region.columns.size() + column;
             const double g = with_bias(gate_product, gate_bias[column], accumulation);
             const double u = with_bias(up_product, up_bias[column], accumulation);
             const double row_weight = of.row_weight(part.region.rows[row]);
             out.gate[at] = g;
             out.up[at] = u;
             out.value[at] =
                 accumulation == Accumulation::float64
                     ? output_element(g, u, of.activation, row_weight)
                     : round_to(of.out, static_cast<double>(unrounded(static_cast<float>(g), static_cast<float>(u),
                                                                      of.activation, static_cast<float>(row_weight))));
           });
  return out;
}

Tensor group_output(const GroupedCall& call, std::int64_t expert) {
  const Tensor& c = call.tensors.c;
  return c.rank == 3 ? slot_matrix(c, expert) : c;
}

OutputMatrix output_of(const GroupedCall& call, std::int64_t expert) {
  const GroupRows& group = group_of(call, expert);
  const auto* const weights = static_cast<const float*>(call.tensors.row_weights.data);
  return {.m = group.count,
          .n = call.problem.n,
          .out = call.problem.out,
          .activation = call.problem.activation,
          .row_weights = call.problem.row_weights ? weights + group.first : nullptr,
          .first_row = call.tensors.c.rank == 3 ? 0 : group.first};
}

Verdict judge_grouped(const GroupedCall& call, Rule rule, const std::vector<GroupRegion>& parts,
                      Accumulation accumulation, Numerics numerics, int threads) {
  Verdict verdict;
  verdict.rule = rule;
  for (const GroupRegion& part : parts) {
    const Outputs reference = grouped_outputs(call, part, Accumulation::float64, numerics, threads);
    const Outputs plain =
        rule == Rule::general ? grouped_outputs(call, part, accumulation, numerics, threads) : Outputs{};
    verdict.include(
        judge(output_of(call, part.expert), rule, part.region, reference, plain, group_output(call, part.expert)),
        group_of(call, part.expert).first);
  }
  return verdict;
}

}  // namespace thresher::reference
