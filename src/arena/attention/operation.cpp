#include "arena/attention/operation.hpp"

#include <algorithm>

#include "arena/attention/inputs.hpp"
#include "arena/attention/inspector.hpp"
#include "arena/attention/judge.hpp"
#include "arena/attention/task.hpp"
#include "reference/attention_view.hpp"

namespace thresher::arena {
namespace {

/// Sequences are not made shorter than this.
constexpr std::int64_t least_rows = 64;

}  // namespace

const Operation& attention_operation() {
  static const AttentionOperation operation;
  return operation;
}

std::string AttentionOperation::label(const Problem& problem) const { return label_of(problem.as<AttentionTask>()); }

bool AttentionOperation::offers(const Problem&, Distribution distribution) const {
  // The contest is one of dual GEMMs; and no exponential but that of 0 is exact.
  return distribution != Distribution::contest && distribution != Distribution::integers;
}

std::vector<HostTensor> AttentionOperation::inputs(const Problem& problem, Distribution distribution,
                                                   std::uint64_t seed) const {
  return attention_inputs(problem.as<AttentionTask>(), distribution, seed);
}

std::vector<HostTensor> AttentionOperation::outputs(const Problem& problem) const {
  return attention_outputs(problem.as<AttentionTask>());
}

std::unique_ptr<Judge> AttentionOperation::judge(const Problem& problem, Distribution,
                                                 const std::vector<HostTensor>& inputs, const Maker&,
                                                 std::uint64_t seed) const {
  return make_attention_judge(problem.as<AttentionTask>(), inputs, seed);
}

std::unique_ptr<Inspector> AttentionOperation::inspector(const Problem& problem, Distribution,
                                                         const std::vector<HostTensor>& inputs, const Maker&,
                                                         std::uint64_t seed) const {
  return make_attention_inspector(problem.as<AttentionTask>(), inputs, seed);
}

Cost AttentionOperation::cost(const Problem& problem) const {
  const auto& task = problem.as<AttentionTask>();
  const AttentionProblem& p = task.problem;
  double pairs = 0;
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const auto index = static_cast<std::size_t>(batch);
    const reference::Sequence sequence{0, p.variable_length ? task.query_lengths[index] : p.queries, 0,
                                       p.variable_length ? task.key_lengths[index] : p.keys};
    for (std::int64_t query = 0; query < sequence.queries; ++query) {
      const reference::KeyRange seen = reference::visible_keys(p, sequence, query);
      pairs += seen.empty() ? 0.0 : static_cast<double>(seen.end - seen.begin);
    }
  }
  const double rows = p.variable_length ? 1 : static_cast<double>(p.batch);
  const double query_rows = rows * static_cast<double>(p.heads * p.queries);
  const double key_rows = rows * static_cast<double>(p.kv_heads * p.keys);
  const auto width = static_cast<double>(p.head_dim);
  constexpr double element_bytes = 2;
  return {4 * pairs * static_cast<double>(p.heads) * width,
          2 * (query_rows + key_rows) * width * element_bytes + (task.lse ? 4 * query_rows : 0)};
}

std::optional<Problem> AttentionOperation::neighbour(const Problem& problem) const {
  auto near = problem.as<AttentionTask>();
  if (near.problem.variable_length) {
    return std::nullopt;
  }
  near.problem.queries += 3;
  near.problem.keys += 5;
  return problem_of(std::move(near));
}

std::optional<Problem> AttentionOperation::smaller(const Problem& problem) const {
  auto half = problem.as<AttentionTask>();
  AttentionProblem& p = half.problem;
  std::int64_t& longest = p.queries > p.keys ? p.queries : p.keys;
  std::int64_t& greatest = longest >= 2 * least_rows ? longest : p.batch;
  if (p.variable_length || greatest < 2) {
    return std::nullopt;
  }
  greatest /= 2;
  return problem_of(std::move(half));
}

}  // namespace thresher::arena
