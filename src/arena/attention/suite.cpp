// Problems of attention: in suites and on a command line.
#include <algorithm>
#include <iterator>

#include "arena/attention/parts.hpp"
#include "arena/attention/task.hpp"
#include "arena/operation/fields.hpp"
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

std::vector<std::optional<Format>> narrow_formats(const ProblemTable& tables, const std::string& key) {
  return choices<std::optional<Format>>(tables, key, narrower_formats, std::optional<Format>{});
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

/// The task that the lists say, with the lengths of paged sequences.
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

constexpr std::array formats{Format::fp16, Format::bf16};

template <std::size_t count>
std::vector<std::string> texts_of(const std::array<std::int64_t, count>& numbers) {
  std::vector<std::string> texts;
  for (const std::int64_t number : numbers) {
    texts.push_back(std::to_string(number));
  }
  return texts;
}

AttentionProblem& attention(Problem& problem) { return problem.as<AttentionTask>().problem; }

}  // namespace

void add_attention_problems(const ProblemTable& tables, std::vector<Problem>& problems) {
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
  std::int64_t wanted_kv_heads = 0;
  SequenceLengths lengths = SequenceLengths::equal;
  Lists lists;
  lists.over("batch", batches, p.batch);
  lists.over("page_size", page_sizes, p.page_size);
  lists.over("lengths", choices<SequenceLengths>(tables, "lengths", lengths_of_pages, SequenceLengths::equal), lengths);
  lists.over("kv_format", narrow_formats(tables, "kv_format"), p.kv_format);
  lists.over("q_format", narrow_formats(tables, "q_format"), p.q_format);
  lists.over("value_dim", extents_or(tables, "value_dim", 1, 0), p.value_dim);
  lists.over("sinks", truths(tables, "sinks"), p.sinks);
  lists.over("heads", tables.extents("heads", 1), p.heads);
  lists.over("kv_heads", extents_or(tables, "kv_heads", 1, 0), wanted_kv_heads);
  lists.over("queries", rows_of(tables, "queries", task.query_lengths), p.queries);
  lists.over("keys", rows_of(tables, "keys", task.key_lengths), p.keys);
  lists.over("head_dim", tables.extents("head_dim", 1), p.head_dim);
  lists.over("format", choices<Format>(tables, "format", named(formats), std::nullopt), p.format);
  lists.over("causal", truths(tables, "causal"), p.causal);
  lists.over("lse", truths(tables, "lse"), task.lse);
  lists.over("order", choices<bool>(tables, "order", orders, task.rows_first), task.rows_first);
  lists.over("scale", numbers_or<std::optional<float>>(tables, "scale", std::nullopt), p.scale);
  lists.over("softcap", numbers_or<float>(tables, "softcap", 0.0F), p.softcap);
  lists.each({"batch", "heads", "kv_heads", "queries", "keys", "head_dim", "order", "value_dim", "lengths", "page_size",
              "sinks", "q_format", "kv_format", "format", "scale", "softcap", "causal", "lse"},
             [&] {
               p.kv_heads = wanted_kv_heads == 0 ? p.heads : wanted_kv_heads;
               check_task(tables, task);
               add_once(tables, "heads", problem_of(whole_task(task, lengths)), problems);
             });
}

std::vector<ProblemOption> attention_problem_options() {
  return {
      {.name = "--a",
       .help = "format of q, k, v and o; bf16 when left out",
       .allowed = names_of(formats),
       .set = [](Problem& problem, const std::string& text) { attention(problem).format = value_of(formats, text); }},
      {.name = "--head-dim",
       .help = "64 when left out",
       .allowed = texts_of(ops::head_dims),
       .set = [](Problem& problem, const std::string& text) { attention(problem).head_dim = std::stoll(text); }},
      {.name = "--value-dim",
       .help = "of v and o; as --head-dim when left out",
       .allowed = texts_of(ops::value_dims),
       .set = [](Problem& problem, const std::string& text) { attention(problem).value_dim = std::stoll(text); }},
      {.name = "--fp8-keys",
       .help = "the kernel for keys and values in FP8",
       .is_flag = true,
       .set = [](Problem& problem, const std::string&) { attention(problem).kv_format = Format::fp8_e4m3; }},
      {.name = "--fp8-queries",
       .help = "the kernel for queries in FP8 too",
       .is_flag = true,
       .set =
           [](Problem& problem, const std::string&) {
             attention(problem).q_format = attention(problem).kv_format = Format::fp8_e4m3;
           }},
      {.name = "--page-size",
       .help = "keys of a page; none are in pages when left out",
       .set =
           [](Problem& problem, const std::string& text) {
             AttentionProblem& p = attention(problem);
             p.page_size = std::stoll(text);
             p.pages = 1;
             p.variable_length = true;
           }},
      {.name = "--softcap",
       .help = "the kernel for a softcap",
       .is_flag = true,
       .set = [](Problem& problem, const std::string&) { attention(problem).softcap = 1.0F; }}};
}

}  // namespace thresher::arena
