#include "arena/attention/operation.hpp"

#include <algorithm>

#include "arena/attention/inputs.hpp"
#include "arena/attention/inspector.hpp"
#include "arena/attention/judge.hpp"
#include "arena/attention/task.hpp"
#include "arena/random.hpp"
#include "reference/attention_view.hpp"

namespace thresher::arena {
namespace {

/// Sequences are not made shorter than this.
constexpr std::int64_t min_rows = 64;

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

/// Rows of a pool stay where they are, since some belong to nobody.
std::vector<HostTensor> AttentionOperation::variation(const std::vector<HostTensor>& inputs, std::size_t index) const {
  const bool has_pool =
      std::any_of(inputs.begin(), inputs.end(), [](const HostTensor& input) { return input.name == "block_table"; });
  if (!has_pool) {
    return Operation::variation(inputs, index);
  }
  std::vector<HostTensor> varied = inputs;
  Random random(derive_seed(index, "variation"));
  for (HostTensor& input : varied) {
    flip_signs(input, random);
  }
  return varied;
}

std::optional<std::vector<HostTensor>> AttentionOperation::rearranged(const Problem& problem, Distribution distribution,
                                                                      std::uint64_t change, std::uint64_t seed) const {
  const auto& task = problem.as<AttentionTask>();
  if (!task.problem.variable_length) {
    return std::nullopt;
  }
  return attention_inputs(task, other_lengths(task, change, seed), distribution, derive_seed(seed, "rearranged"));
}

bool AttentionOperation::uses_every_element(const Problem& problem) const {
  const AttentionProblem& p = problem.as<AttentionTask>().problem;
  return p.page_size == 0 && p.window_left < 0 && p.window_right < 0;
}

Cost AttentionOperation::cost(const Problem& problem) const {
  const auto& task = problem.as<AttentionTask>();
  const AttentionProblem& p = task.problem;
  double pairs = 0;
  double key_rows = 0;
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const auto index = static_cast<std::size_t>(batch);
    const reference::Sequence sequence{0, p.variable_length ? task.query_lengths[index] : p.queries, 0,
                                       p.variable_length ? task.key_lengths[index] : p.keys};
    reference::KeyRange all{sequence.keys, 0};
    for (std::int64_t query = 0; query < sequence.queries; ++query) {
      const reference::KeyRange seen = reference::visible_keys(p, sequence, query);
      if (!seen.empty()) {
        pairs += static_cast<double>(seen.end - seen.begin);
        all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
      }
    }
    key_rows += all.empty() ? 0.0 : static_cast<double>((all.end - all.begin) * p.kv_heads);
  }
  const double query_rows =
      (p.variable_length ? 1 : static_cast<double>(p.batch)) * static_cast<double>(p.heads * p.queries);
  const auto width = static_cast<double>(p.head_dim);
  const auto value_width = static_cast<double>(effective_value_dim(p));
  const auto bytes_of = [](Format format) { return static_cast<double>(bits(format)) / 8; };
  return {2 * pairs * static_cast<double>(p.heads) * (width + value_width),
          query_rows * (width * bytes_of(effective_q_format(p)) + value_width * bytes_of(p.format)) +
              key_rows * (width + value_width) * bytes_of(effective_kv_format(p)) + (task.lse ? 4 * query_rows : 0)};
}

/// The pool, of which no sequence uses some.
double AttentionOperation::working_bytes(const Problem& problem) const {
  const AttentionProblem& p = problem.as<AttentionTask>().problem;
  return static_cast<double>(p.pages) * static_cast<double>(p.page_size) * static_cast<double>(p.kv_heads) *
         static_cast<double>(p.head_dim + effective_value_dim(p)) * bits(effective_kv_format(p)) / 8;
}

std::optional<Problem> AttentionOperation::neighbour(const Problem& problem) const {
  auto near = problem.as<AttentionTask>();
  if (near.problem.page_size > 0) {
    near.lengths = SequenceLengths::listed;
    for (std::int64_t& keys : near.key_lengths) {
      keys += 3;
    }
    near.query_lengths.push_back(2);
    near.key_lengths.push_back(37);
    return problem_of(completed(std::move(near)));
  }
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
  if (p.page_size > 0) {
    if (*std::max_element(half.key_lengths.begin(), half.key_lengths.end()) < 2 * min_rows) {
      return std::nullopt;
    }
    half.lengths = SequenceLengths::listed;
    for (auto* const lengths : {&half.query_lengths, &half.key_lengths}) {
      for (std::int64_t& length : *lengths) {
        length = (length + 1) / 2;
      }
    }
    return problem_of(completed(std::move(half)));
  }
  std::int64_t& longest = p.queries > p.keys ? p.queries : p.keys;
  std::int64_t& greatest = longest >= 2 * min_rows ? longest : p.batch;
  if (p.variable_length || greatest < 2) {
    return std::nullopt;
  }
  greatest /= 2;
  return problem_of(std::move(half));
}

}  // namespace thresher::arena
