// The [[problem]]s of suites about attention.
#include <algorithm>
#include <iterator>

#include "arena/attention/operation.hpp"
#include "arena/attention/task.hpp"
#include "ops/validate_attention.hpp"

namespace thresher::arena {
namespace {

constexpr std::array orders{Named<bool>{"heads-first", false}, Named<bool>{"rows-first", true}};

constexpr std::array narrower_formats{Named<std::optional<Format>>{"same", std::nullopt},
                                      Named<std::optional<Format>>{name(Format::fp8_e4m3), Format::fp8_e4m3}};
constexpr std::array lengths_of_pages{Named<SequenceLengths>{"equal", SequenceLengths::equal},
                                      Named<SequenceLengths>{"mixed", SequenceLengths::mixed}};

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

/// Queries or keys: a number, or with `lengths` (variable length) nothing that counts.
std::vector<std::int64_t> rows_of(const ProblemTable& tables, const std::string& key,
                                  const std::vector<std::int64_t>& lengths) {
  return lengths.empty() ? tables.extents(key, 0) : std::vector<std::int64_t>{0};
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

template <std::size_t count>
void check_width(const ProblemTable& tables, const std::string& key, std::int64_t width,
                 const std::array<std::int64_t, count>& expected) {
  if (std::find(expected.begin(), expected.end(), width) == expected.end()) {
    tables.holder(key).fail(key, fmt::format("is {}, but must be {} or {}", width,
                                             fmt::join(expected.begin(), expected.end() - 1, ", "), expected.back()));
  }
}

void check_task(const ProblemTable& tables, const AttentionTask& task) {
  const AttentionProblem& problem = task.problem;
  const auto refuse = [&](const std::string& key, const std::string& sentence) {
    tables.holder(key).fail(key, sentence);
  };
  check_width(tables, "head_dim", problem.head_dim, ops::head_dims);
  check_width(tables, tables.has("value_dim") ? "value_dim" : "head_dim", effective_value_dim(problem),
              ops::value_dims);
  if (problem.heads % problem.kv_heads != 0) {
    refuse("kv_heads", fmt::format("is {}, but must divide heads, which is {}", problem.kv_heads, problem.heads));
  }
  if (problem.q_format && !problem.kv_format) {
    refuse("q_format", fmt::format("is {}, which takes keys and values in it too", name(*problem.q_format)));
  }
  if (!(problem.softcap >= 0)) {
    refuse("softcap", "must not be negative");
  }
  if (problem.variable_length && problem.page_size == 0 && !task.rows_first) {
    refuse("order", "must be rows-first where sequences have different lengths");
  }
}

/// What the lists say, with the lengths of sequences that pages bring.
AttentionTask whole_task(AttentionTask task, SequenceLengths lengths) {
  if (!task.query_lengths.empty()) {
    return completed(std::move(task));
  }
  return task.problem.page_size > 0 ? with_lengths(std::move(task), lengths) : task;
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
  const auto page_sizes = extents_or(tables, "page_size", 1, 0);
  const bool has_pages = page_sizes.front() > 0;
  if (!has_pages && tables.has("lengths")) {
    tables.holder("lengths").fail("lengths", "says how long sequences are whose keys are in pages: give page_size too");
  }
  const bool is_listed = !task.query_lengths.empty();
  task.rows_first = is_listed || has_pages;
  const auto all_lengths = choices<SequenceLengths>(tables, "lengths", lengths_of_pages, SequenceLengths::equal);
  const auto of_keys = choices<std::optional<Format>>(tables, "kv_format", narrower_formats, std::optional<Format>{});
  const auto of_queries = choices<std::optional<Format>>(tables, "q_format", narrower_formats, std::optional<Format>{});
  const auto value_dims = extents_or(tables, "value_dim", 1, 0);
  const auto sinks = truths(tables, "sinks");
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
  SequenceLengths lengths = SequenceLengths::equal;
  const auto add = [&] {
    p.kv_heads = wanted_kv_heads == 0 ? p.heads : wanted_kv_heads;
    check_task(tables, task);
    add_once(tables, "heads", problem_of(whole_task(task, lengths)), problems);
  };
  const auto by_lse = [&] { each(lses, task.lse, add); };
  const auto by_causal = [&] { each(causals, p.causal, by_lse); };
  const auto by_softcap = [&] { each(softcaps, p.softcap, by_causal); };
  const auto by_scale = [&] { each(scales, p.scale, by_softcap); };
  const auto by_format = [&] { each(of_format, p.format, by_scale); };
  const auto by_key_format = [&] { each(of_keys, p.kv_format, by_format); };
  const auto by_query_format = [&] { each(of_queries, p.q_format, by_key_format); };
  const auto by_sinks = [&] { each(sinks, p.sinks, by_query_format); };
  const auto by_page_size = [&] { each(page_sizes, p.page_size, by_sinks); };
  const auto by_lengths = [&] { each(all_lengths, lengths, by_page_size); };
  const auto by_value_dim = [&] { each(value_dims, p.value_dim, by_lengths); };
  const auto by_order = [&] { each(of_order, task.rows_first, by_value_dim); };
  const auto by_head_dim = [&] { each(head_dims, p.head_dim, by_order); };
  const auto by_keys = [&] { each(keys, p.keys, by_head_dim); };
  const auto by_queries = [&] { each(queries, p.queries, by_keys); };
  const auto by_kv_heads = [&] { each(kv_heads, wanted_kv_heads, by_queries); };
  const auto by_heads = [&] { each(heads, p.heads, by_kv_heads); };
  each(batches, p.batch, by_heads);
}

}  // namespace thresher::arena
