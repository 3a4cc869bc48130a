// The [[problem]]s of suites about attention.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "arena/attention/operation.hpp"
#include "arena/attention/task.hpp"

namespace thresher::arena {
namespace {

constexpr std::array orders{Named<bool>{"heads-first", false}, Named<bool>{"rows-first", true}};

std::vector<bool> truths(const ProblemTable& tables, const std::string& key) {
  return tables.has(key) ? tables.holder(key).booleans(key) : std::vector{false};
}

std::vector<std::int64_t> extents_or(const ProblemTable& tables, const std::string& key, std::int64_t least,
                                     std::int64_t fallback) {
  return tables.has(key) ? tables.extents(key, least) : std::vector{fallback};
}

/// Numbers, none of which stands for what `fallback` is.
template <class Value>
std::vector<Value> numbers_or(const ProblemTable& tables, const std::string& key, Value fallback) {
  if (!tables.has(key)) {
    return {fallback};
  }
  const std::vector<double> numbers = tables.holder(key).numbers(key);
  std::vector<Value> values;
  std::transform(numbers.begin(), numbers.end(), std::back_inserter(values),
                 [](double number) { return Value(static_cast<float>(number)); });
  return values;
}

/// Queries or keys: a number, or with `lengths` (variable length) their sum.
std::vector<std::int64_t> rows_of(const ProblemTable& tables, const std::string& key,
                                  const std::vector<std::int64_t>& lengths) {
  return lengths.empty() ? tables.extents(key, 0)
                         : std::vector{std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})};
}

void read_lengths(const ProblemTable& tables, AttentionTask& task) {
  if (!tables.has("query_lengths") && !tables.has("key_lengths")) {
    return;
  }
  task.query_lengths = tables.extents("query_lengths", 0);
  task.key_lengths = tables.extents("key_lengths", 0);
  if (task.query_lengths.size() != task.key_lengths.size()) {
    tables.holder("key_lengths")
        .fail("key_lengths", fmt::format("has {} sequences, but query_lengths has {}", task.key_lengths.size(),
                                         task.query_lengths.size()));
  }
  task.problem.variable_length = true;
  task.rows_first = true;
}

void check_task(const ProblemTable& tables, const AttentionTask& task) {
  const AttentionProblem& problem = task.problem;
  const auto refuse = [&](const std::string& key, const std::string& sentence) {
    tables.holder(key).fail(key, sentence);
  };
  if (problem.head_dim != 64 && problem.head_dim != 128) {
    refuse("head_dim", fmt::format("is {}, but must be 64 or 128", problem.head_dim));
  }
  if (problem.heads % problem.kv_heads != 0) {
    refuse("kv_heads", fmt::format("is {}, but must divide heads, which is {}", problem.kv_heads, problem.heads));
  }
  if (!(problem.softcap >= 0)) {
    refuse("softcap", "must not be negative");
  }
  if (problem.variable_length && !task.rows_first) {
    refuse("order", "must be rows-first where sequences have different lengths");
  }
}

/// A window's side: one number, -1 for no bound.
std::int64_t window_side(const ProblemTable& tables, const std::string& key) {
  const std::int64_t side = tables.has(key) ? tables.holder(key).integer(key) : -1;
  if (side < -1) {
    tables.holder(key).fail(key, fmt::format("is {}, but must be -1 (no bound) or more", side));
  }
  return side;
}

}  // namespace

void AttentionOperation::add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const {
  AttentionTask task;
  AttentionProblem& p = task.problem;
  read_lengths(tables, task);
  p.window_left = window_side(tables, "window_left");
  p.window_right = window_side(tables, "window_right");
  const auto batches = task.query_lengths.empty() ? extents_or(tables, "batch", 1, 1)
                                                  : std::vector{static_cast<std::int64_t>(task.query_lengths.size())};
  const auto heads = tables.extents("heads", 1);
  const auto kv_heads = extents_or(tables, "kv_heads", 1, 0);
  const auto queries = rows_of(tables, "queries", task.query_lengths);
  const auto keys = rows_of(tables, "keys", task.key_lengths);
  const auto head_dims = tables.extents("head_dim", 1);
  const auto of_format = choices<Format>(tables, "format", named(std::array{Format::fp16, Format::bf16}), std::nullopt);
  const auto causals = truths(tables, "causal");
  const auto lses = truths(tables, "lse");
  const auto of_order = choices<bool>(tables, "order", orders, task.rows_first);
  const auto scales = numbers_or<std::optional<float>>(tables, "scale", std::nullopt);
  const auto softcaps = numbers_or<float>(tables, "softcap", 0.0F);
  std::int64_t wanted_kv_heads = 0;
  const auto add = [&] {
    p.kv_heads = wanted_kv_heads == 0 ? p.heads : wanted_kv_heads;
    check_task(tables, task);
    add_once(tables, "heads", problem_of(task), problems);
  };
  const auto by_lse = [&] { each(lses, task.lse, add); };
  const auto by_causal = [&] { each(causals, p.causal, by_lse); };
  const auto by_softcap = [&] { each(softcaps, p.softcap, by_causal); };
  const auto by_scale = [&] { each(scales, p.scale, by_softcap); };
  const auto by_format = [&] { each(of_format, p.format, by_scale); };
  const auto by_order = [&] { each(of_order, task.rows_first, by_format); };
  const auto by_head_dim = [&] { each(head_dims, p.head_dim, by_order); };
  const auto by_keys = [&] { each(keys, p.keys, by_head_dim); };
  const auto by_queries = [&] { each(queries, p.queries, by_keys); };
  const auto by_kv_heads = [&] { each(kv_heads, wanted_kv_heads, by_queries); };
  const auto by_heads = [&] { each(heads, p.heads, by_kv_heads); };
  each(batches, p.batch, by_heads);
}

}  // namespace thresher::arena
