#include "arena/moe_layer/operation.hpp"

#include <algorithm>

#include "arena/moe_layer/inputs.hpp"
#include "arena/moe_layer/judge.hpp"
#include "arena/moe_layer/task.hpp"

namespace thresher::arena {
namespace {

/// Problems are not made smaller than this along any side.
constexpr std::int64_t min_extent = 64;
/// What every format's rows and scales divide into.
constexpr std::int64_t extent_step = 32;

double as_double(std::int64_t value) { return static_cast<double>(value); }

double bytes_per_element(Format format, OperandRole role) { return format_traits(format).stored_bits(role) / 8; }

double weight_bytes(const MoeProblem& p, std::int64_t experts) {
  const double matrix = as_double(experts) * as_double(p.hidden_size) * as_double(p.intermediate_size);
  return matrix *
         (2 * bytes_per_element(p.gate_up, OperandRole::weights) + bytes_per_element(p.down, OperandRole::weights));
}

const LayerTask& layer(const Problem& problem) { return problem.as<LayerTask>(); }

/// Intermediates that share scales stay whole.
std::int64_t intermediate_step(const MoeProblem& p) {
  return std::max<std::int64_t>(extent_step, format_traits(p.intermediate).n_multiple);
}

}  // namespace

const Operation& moe_layer_operation() {
  static const LayerOperation operation(false);
  return operation;
}

const Operation& gated_mlp_operation() {
  static const LayerOperation operation(true);
  return operation;
}

std::string LayerOperation::label(const Problem& problem) const { return label_of(layer(problem)); }

/// Nothing is exact from end to end: what is rounded between the products is not what the definition adds up.
bool LayerOperation::offers(const Problem&, Distribution distribution) const {
  return distribution != Distribution::integers;
}

std::vector<HostTensor> LayerOperation::inputs(const Problem& problem, Distribution distribution,
                                               std::uint64_t seed) const {
  return layer_inputs(layer(problem), distribution, seed);
}

std::vector<HostTensor> LayerOperation::outputs(const Problem& problem) const {
  return layer_outputs_of(layer(problem));
}

/// Weights of other experts, and tokens and router's weights with other signs: the choices stay.
std::vector<HostTensor> LayerOperation::variation(const std::vector<HostTensor>& inputs, std::size_t index) const {
  std::vector<HostTensor> varied;
  Random random(derive_seed(index, "variation"));
  std::int64_t step = 1;
  for (const HostTensor& input : inputs) {
    varied.push_back(input.is_weight ? rotate_rows(input, static_cast<std::int64_t>(index) * step) : input);
    if (!input.is_weight || is_dense_) {
      flip_signs(varied.back(), random);
    }
    step += 2;
  }
  return varied;
}

std::unique_ptr<Judge> LayerOperation::judge(const Problem& problem, Distribution,
                                             const std::vector<HostTensor>& inputs, const Maker& maker,
                                             std::uint64_t seed) const {
  return make_layer_judge(layer(problem), inputs, maker, seed);
}

std::unique_ptr<Inspector> LayerOperation::inspector(const Problem& problem, Distribution distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker& maker,
                                                     std::uint64_t seed) const {
  return make_layer_inspector(layer(problem), distribution, inputs, maker, seed);
}

Cost LayerOperation::cost(const Problem& problem) const {
  const LayerTask& task = layer(problem);
  const MoeProblem& p = task.problem;
  constexpr double bytes_of_a_choice = 8;  // an id and a weight
  const ChoiceCounts counts = choice_counts(task);
  const double in = as_double(counts.active_tokens * p.hidden_size) * bytes_per_element(p.x, OperandRole::tokens);
  const double out = as_double(p.tokens * p.hidden_size) * bytes_per_element(p.out, OperandRole::tokens);
  const double router = task.is_dense ? 0 : as_double(task.choices()) * bytes_of_a_choice;
  return {6 * as_double(counts.rows) * as_double(p.intermediate_size) * as_double(p.hidden_size),
          in + router + weight_bytes(p, counts.active_experts) + out};
}

/// Packed weights, and what lies between the launches.
double LayerOperation::working_bytes(const Problem& problem) const {
  const LayerTask& task = layer(problem);
  const MoeProblem& p = task.problem;
  const double hidden = as_double(p.intermediate_size) * bytes_per_element(p.intermediate, OperandRole::tokens);
  const double row = task.is_dense ? 0 : as_double(p.hidden_size) * bytes_per_element(p.rows, OperandRole::tokens);
  return weight_bytes(p, p.experts) + as_double(task.choices()) * (hidden + row);
}

std::vector<HostTensor> LayerOperation::activations(const Problem& problem, Distribution distribution,
                                                    std::uint64_t seed) const {
  return layer_activations(layer(problem), distribution, seed);
}

std::optional<std::vector<HostTensor>> LayerOperation::rearranged(const Problem& problem, Distribution distribution,
                                                                  std::uint64_t change, std::uint64_t seed) const {
  if (is_dense_) {
    return std::nullopt;  // there is nothing that a kernel could have remembered
  }
  const LayerTask& task = layer(problem);
  return layer_activations(task, other_choices(task, change, seed), distribution, derive_seed(seed, "rearranged"));
}

bool LayerOperation::uses_every_element(const Problem& problem) const {
  const LayerTask& task = layer(problem);
  const ChoiceCounts counts = choice_counts(task);
  return !format_traits(task.problem.intermediate).is_requantised() && counts.rows == task.choices() &&
         counts.active_experts == task.problem.experts;
}

std::optional<Problem> LayerOperation::neighbour(const Problem& problem) const {
  LayerTask near = layer(problem);
  near.problem.tokens += 3;
  near.problem.hidden_size += extent_step;
  near.problem.intermediate_size += intermediate_step(near.problem);
  if (!is_dense_) {
    near.problem.experts += 1;
    near.total_experts += 1;
  }
  return problem_of(std::move(near));
}

std::optional<Problem> LayerOperation::smaller(const Problem& problem) const {
  LayerTask half = layer(problem);
  MoeProblem& p = half.problem;
  const std::int64_t step = intermediate_step(p);
  const auto halved = [](std::int64_t extent, std::int64_t of) { return extent / 2 / of * of; };
  if (p.tokens >= 2 * min_extent && p.tokens >= std::max(p.hidden_size, p.intermediate_size)) {
    p.tokens = (p.tokens + 1) / 2;
  } else if (p.intermediate_size >= std::max(p.hidden_size, 2 * std::max(min_extent, step))) {
    p.intermediate_size = halved(p.intermediate_size, step);
  } else if (p.hidden_size >= 2 * min_extent) {
    p.hidden_size = halved(p.hidden_size, extent_step);
  } else if (p.tokens >= 2 * min_extent) {
    p.tokens = (p.tokens + 1) / 2;
  } else if (p.experts >= 4 && half.total_experts / 2 >= p.top_k) {
    p.experts /= 2;
    half.total_experts /= 2;
  } else {
    return std::nullopt;
  }
  return problem_of(std::move(half));
}

}  // namespace thresher::arena
