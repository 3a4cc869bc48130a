#include "ops/attention_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "ops/knob_words.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using pipeline::attention::SplitConfig;
using pipeline::attention::StreamConfig;

constexpr std::int64_t keys_per_split_block = SplitConfig::chunk * SplitConfig::chunks;

std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

/// The fewest blocks of a cluster that hold all keys; 0 when no cluster does.
int split_cluster(const AttentionProblem& problem) {
  for (const int cluster : {1, 2, 4, 8}) {
    if (problem.keys <= cluster * keys_per_split_block) {
      return cluster;
    }
  }
  return 0;
}

std::int64_t split_blocks(const AttentionProblem& problem, int cluster) {
  return problem.batch * problem.heads * ceil_div(problem.queries, SplitConfig::rows) * cluster;
}

/// Logits that have to be formed before their largest is looked for.
bool is_general(const AttentionProblem& problem) {
  return problem.softcap > 0.0F || !(effective_scale(problem) > 0.0F);
}

/// As measured (docs/kernels/attention.md).
StreamConfig default_stream(const AttentionProblem& problem) {
  const bool few_queries = !problem.variable_length && problem.queries <= StreamConfig::rows_per_warpgroup;
  const bool narrow = problem.head_dim == 64;
  const bool general = is_general(problem);
  const int math_warpgroups = few_queries ? 1 : narrow && !general ? 3 : 2;
  return {.head_dim = static_cast<int>(problem.head_dim),
          .keys = 128,
          .stages = 2,
          .math_warpgroups = math_warpgroups,
          .cluster = 1,
          .queries_in_registers = math_warpgroups != 3,
          .take_turns = math_warpgroups > 1,
          .hold_softmax = !narrow,
          .base_descriptors = !narrow};
}

/// Takes `name` out of the knobs; `value` keeps its default when it is not there.
template <typename Value>
void take(std::map<std::string, int>& knobs, const std::string& name, Value& value,
          std::initializer_list<int> allowed) {
  const auto found = knobs.find(name);
  if (found == knobs.end()) {
    return;
  }
  if (std::find(allowed.begin(), allowed.end(), found->second) == allowed.end()) {
    std::string list;
    for (const int one : allowed) {
      list += (list.empty() ? "" : ", ") + std::to_string(one);
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the attention knob {} is {}, expected one of {}", name, found->second, list));
  }
  value = static_cast<Value>(found->second);
  knobs.erase(found);
}

void refuse_rest(const std::map<std::string, int>& knobs, const std::string& strategy) {
  if (!knobs.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the attention strategy {} has no knob {}", strategy, knobs.begin()->first));
  }
}

SplitConfig default_split(const AttentionProblem& problem, int cluster) {
  // Eight blocks that exchange 128 columns leave no registers for finer steps.
  const bool crowded = cluster == 8 && problem.head_dim == 128;
  return {
      .head_dim = static_cast<int>(problem.head_dim), .cluster = cluster, .parts = crowded ? 1 : 4, .meet_early = true};
}

AttentionChoice choose_split(const AttentionProblem& problem, std::map<std::string, int> knobs, std::string why) {
  const int cluster = split_cluster(problem);
  if (cluster == 0) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the attention strategy split takes at most {} keys, problem.keys is {}",
                            8 * keys_per_split_block, problem.keys));
  }
  AttentionChoice choice{.strategy = "split", .split = default_split(problem, cluster), .why = std::move(why)};
  SplitConfig& split = choice.split;
  take(knobs, "cluster", split.cluster, {1, 2, 4, 8});
  if (split.cluster * keys_per_split_block < problem.keys) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the attention knob cluster is {}, which holds {} keys, problem.keys is {}", split.cluster,
                            split.cluster * keys_per_split_block, problem.keys));
  }
  split.whole = is_whole(problem, split.cluster);
  const bool may_be_whole = split.whole;
  take(knobs, "whole", split.whole, {0, 1});
  if (split.whole && !may_be_whole) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the attention knob whole is 1, which takes {} keys without a mask, a multiple of {} "
                            "queries and one length",
                            split.cluster * keys_per_split_block, SplitConfig::rows));
  }
  take(knobs, "parts", split.parts, {1, 2, 4});
  const bool may_inspect_early = split.whole && !is_general(problem) && split.parts > 1;
  split.inspect_early = may_inspect_early;
  take(knobs, "inspect_early", split.inspect_early, {0, 1});
  if (split.inspect_early && !may_inspect_early) {
    throw Error(ErrorCode::invalid_argument,
                "the attention knob inspect_early is 1, which takes whole tiles, several parts, a positive scale and "
                "no softcap");
  }
  take(knobs, "meet_early", split.meet_early, {0, 1});
  take(knobs, "alone", split.alone, {0, 1});
  take(knobs, "narrow_exchange", split.narrow_exchange, {0, 1});
  if (split.merged_columns() % (8 * split.groups_per_message()) != 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the attention knob narrow_exchange is 1, which takes 16 columns a block, cluster {} leaves "
                    "{}",
                    split.cluster, split.merged_columns()));
  }
  refuse_rest(knobs, "split");
  return choice;
}

AttentionChoice choose_pipelined(const AttentionProblem& problem, std::map<std::string, int> knobs, std::string why) {
  AttentionChoice choice{.strategy = "pipelined", .stream = default_stream(problem), .why = std::move(why)};
  StreamConfig& stream = choice.stream;
  take(knobs, "keys", stream.keys, {64, 80, 96, 112, 128, 144, 160, 176, 192});
  take(knobs, "stages", stream.stages, {2, 3, 4});
  take(knobs, "math_warpgroups", stream.math_warpgroups, {1, 2, 3});
  take(knobs, "cluster", stream.cluster, {1, 2});
  take(knobs, "take_turns", stream.take_turns, {0, 1});
  take(knobs, "hold_softmax", stream.hold_softmax, {0, 1});
  take(knobs, "queries_in_registers", stream.queries_in_registers, {0, 1});
  take(knobs, "base_descriptors", stream.base_descriptors, {0, 1});
  refuse_rest(knobs, "pipelined");
  constexpr unsigned most_shared_bytes = 227 * 1024;
  if (stream.shared_bytes() > most_shared_bytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("these attention knobs need {} bytes of shared memory, a block has {}",
                            stream.shared_bytes(), most_shared_bytes));
  }
  return choice;
}

}  // namespace

bool is_whole(const AttentionProblem& problem, int cluster) {
  const bool sees_all = !problem.causal && problem.window_left < 0 && problem.window_right < 0;
  return sees_all && !problem.variable_length && problem.queries % SplitConfig::rows == 0 &&
         problem.keys == cluster * keys_per_split_block;
}

AttentionChoice choose_attention(const AttentionProblem& problem, const AttentionOptions& options,
                                 int multiprocessors) {
  std::string why = "asked for";
  std::string strategy = options.strategy;
  if (strategy.empty()) {
    const int cluster = problem.variable_length ? 0 : split_cluster(problem);
    const bool small = cluster > 0 && split_blocks(problem, cluster) <= multiprocessors;
    strategy = small ? "split" : "pipelined";
    why = small ? fmt::format("{} blocks of 64 queries and up to 256 keys are resident at once",
                              split_blocks(problem, cluster))
                : "enough query tiles to fill the machine, or more keys than a cluster holds";
  }
  if (strategy == "split") {
    return choose_split(problem, whole_numbers(options.knobs), std::move(why));
  }
  if (strategy == "pipelined") {
    return choose_pipelined(problem, whole_numbers(options.knobs), std::move(why));
  }
  refuse_rest(whole_numbers(options.knobs), strategy);
  if (strategy != "simple" && problem.head_dim != strategies::attention::row_head_dim) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the attention strategy {} keeps a row in a thread's registers, which takes head_dim 64, "
                            "problem.head_dim is {}",
                            strategy, problem.head_dim));
  }
  using strategies::attention::Staging;
  return {.strategy = strategy,
          .staging = strategy == "rows_shared"      ? Staging::by_row
                     : strategy == "rows_coalesced" ? Staging::coalesced
                                                    : Staging::none,
          .why = std::move(why)};
}

}  // namespace thresher::ops
