#include "arena/grouped_gemm/operation.hpp"

#include <algorithm>

#include "arena/grouped_gemm/inputs.hpp"
#include "arena/grouped_gemm/judge.hpp"
#include "arena/grouped_gemm/task.hpp"

namespace thresher::arena {
namespace {

/// Problems are not made smaller than this along any side.
constexpr std::int64_t min_extent = 64;
/// What every format's rows and scales divide into.
constexpr std::int64_t extent_step = 32;

double as_double(std::int64_t value) { return static_cast<double>(value); }

double bytes_per_element(Format format, OperandRole role = OperandRole::tokens) {
  return format_traits(format).stored_bits(role) / 8;
}

double weight_bytes(const GroupedTask& task, std::int64_t experts) {
  const GroupedProblem& p = task.problem;
  return (p.activation ? 2 : 1) * as_double(experts) * as_double(p.n) * as_double(p.k) *
         bytes_per_element(p.b, OperandRole::weights);
}

}  // namespace

const Operation& grouped_dual_gemm_operation() {
  static const GroupedOperation operation(GroupedKind::dual);
  return operation;
}

const Operation& grouped_gemm_operation() {
  static const GroupedOperation operation(GroupedKind::plain);
  return operation;
}

const Operation& gemm_operation() {
  static const GroupedOperation operation(GroupedKind::dense);
  return operation;
}

std::string GroupedOperation::label(const Problem& problem) const { return label_of(problem.as<GroupedTask>()); }

bool GroupedOperation::offers(const Problem& problem, Distribution distribution) const {
  // The clamp keeps gates where σ is not 1, so nothing there is exact.
  const auto& activation = problem.as<GroupedTask>().problem.activation;
  return distribution != Distribution::integers || !activation || activation->kind != ActivationKind::swiglu_clamped;
}

std::vector<HostTensor> GroupedOperation::inputs(const Problem& problem, Distribution distribution,
                                                 std::uint64_t seed) const {
  return grouped_inputs(problem.as<GroupedTask>(), distribution, seed);
}

std::vector<HostTensor> GroupedOperation::outputs(const Problem& problem) const {
  return grouped_outputs_of(problem.as<GroupedTask>());
}

/// Weights of other experts, and rows with other signs: those that belong to nobody stay where they are.
std::vector<HostTensor> GroupedOperation::variation(const std::vector<HostTensor>& inputs, std::size_t index) const {
  std::vector<HostTensor> varied;
  Random random(derive_seed(index, "variation"));
  std::int64_t step = 1;
  for (const HostTensor& input : inputs) {
    varied.push_back(input.is_weight ? rotate_rows(input, static_cast<std::int64_t>(index) * step) : input);
    if (!input.is_weight) {
      flip_signs(varied.back(), random);
    }
    step += 2;
  }
  return varied;
}

std::unique_ptr<Judge> GroupedOperation::judge(const Problem& problem, Distribution distribution,
                                               const std::vector<HostTensor>& inputs, const Maker& maker,
                                               std::uint64_t seed) const {
  return make_grouped_judge(problem.as<GroupedTask>(), distribution, inputs, maker, seed);
}

std::unique_ptr<Inspector> GroupedOperation::inspector(const Problem& problem, Distribution distribution,
                                                       const std::vector<HostTensor>& inputs, const Maker& maker,
                                                       std::uint64_t seed) const {
  return make_grouped_inspector(problem.as<GroupedTask>(), distribution, inputs, maker, seed);
}

Cost GroupedOperation::cost(const Problem& problem) const {
  const auto& task = problem.as<GroupedTask>();
  const GroupedProblem& p = task.problem;
  const double rows = as_double(task.owned_rows());
  const double rows_of_a = p.layout == RowLayout::gathered ? std::min(rows, as_double(p.tokens)) : rows;
  const double products = p.activation ? 2 : 1;
  return {2 * products * rows * as_double(p.n) * as_double(p.k), rows_of_a * as_double(p.k) * bytes_per_element(p.a) +
                                                                     weight_bytes(task, task.active_experts()) +
                                                                     rows * as_double(p.n) * bytes_per_element(p.out)};
}

double GroupedOperation::working_bytes(const Problem& problem) const {
  const auto& task = problem.as<GroupedTask>();
  return weight_bytes(task, task.problem.experts);  // packed
}

std::vector<HostTensor> GroupedOperation::activations(const Problem& problem, Distribution distribution,
                                                      std::uint64_t seed) const {
  return grouped_activations(problem.as<GroupedTask>(), distribution, seed);
}

std::optional<std::vector<HostTensor>> GroupedOperation::rearranged(const Problem& problem, Distribution distribution,
                                                                    std::uint64_t change, std::uint64_t seed) const {
  if (is_dense()) {
    return std::nullopt;  // there is nothing that a kernel could have remembered
  }
  const auto& task = problem.as<GroupedTask>();
  return grouped_activations(task, other_counts(task, change, seed), distribution, derive_seed(seed, "rearranged"));
}

bool GroupedOperation::uses_every_element(const Problem& problem) const {
  const auto& task = problem.as<GroupedTask>();
  return task.problem.layout == RowLayout::packed && task.margin == 0 && task.active_experts() == task.problem.experts;
}

std::optional<Problem> GroupedOperation::neighbour(const Problem& problem) const {
  GroupedTask near = problem.as<GroupedTask>();
  near.routed.reset();
  near.problem.n += std::max(24, format_traits(near.problem.out).n_multiple);
  near.problem.k += 32;
  near.counts.front() += 3;
  if (!is_dense()) {
    near.counts.push_back(1);
  }
  return problem_of(completed(std::move(near)));
}

std::optional<Problem> GroupedOperation::smaller(const Problem& problem) const {
  GroupedTask half = problem.as<GroupedTask>();
  // Outputs that share scales stay whole.
  const std::int64_t n_step = std::max<std::int64_t>(extent_step, format_traits(half.problem.out).n_multiple);
  const bool halves_n = half.problem.n >= half.problem.k && half.problem.n >= 2 * n_step;
  std::int64_t& greatest = halves_n ? half.problem.n : half.problem.k;
  const std::int64_t max_rows = *std::max_element(half.counts.begin(), half.counts.end());
  if (max_rows >= 2 * min_extent && max_rows >= greatest) {
    half.routed.reset();
    for (std::int64_t& count : half.counts) {
      count = (count + 1) / 2;
    }
    half.problem.rows = half.problem.layout == RowLayout::slots ? (half.problem.rows + 1) / 2 : 0;
  } else if (greatest >= 2 * min_extent) {
    const std::int64_t step = halves_n ? n_step : extent_step;
    greatest = greatest / 2 / step * step;
  } else if (half.counts.size() >= 4) {
    half.routed.reset();
    half.counts.resize(half.counts.size() / 2);
    if (half.owned_rows() == 0) {
      half.counts.front() = 1;
    }
  } else {
    return std::nullopt;
  }
  return problem_of(completed(std::move(half)));
}

}  // namespace thresher::arena
