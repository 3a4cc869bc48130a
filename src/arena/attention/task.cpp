#include "arena/attention/task.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arena/random.hpp"
#include "core/integers.hpp"

namespace thresher::arena {
namespace {

std::string two(std::int64_t first, std::int64_t second, char between) {
  return first == second ? fmt::to_string(first) : fmt::format("{}{}{}", first, between, second);
}

std::int64_t sum(const std::vector<std::int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

/// "1,1,512", and "1*31,512" where a length comes again more than once.
std::string lengths_text(const std::vector<std::int64_t>& lengths) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < lengths.size();) {
    const auto end = std::find_if(lengths.begin() + static_cast<std::ptrdiff_t>(i), lengths.end(),
                                  [&](std::int64_t length) { return length != lengths[i]; });
    const auto count = static_cast<std::size_t>(end - lengths.begin()) - i;
    if (count > 2) {
      words.push_back(fmt::format("{}*{}", lengths[i], count));
    } else {
      words.insert(words.end(), count, fmt::to_string(lengths[i]));
    }
    i += count;
  }
  return fmt::format("{}", fmt::join(words, ","));
}

/// Keys of `count` sequences, at least `least` each and `mean` in the mean: a few are sixteen times as long as others.
std::vector<std::int64_t> mixed_lengths(std::int64_t count, std::int64_t mean, std::int64_t least) {
  constexpr double spread = 16;
  Random random(derive_seed(1, "lengths of keys"));
  std::vector<double> shares;
  for (std::int64_t i = 0; i < count; ++i) {
    shares.push_back(std::pow(spread, random.uniform()));
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  const std::int64_t free_keys = (mean - least) * count;
  std::vector<std::int64_t> lengths;
  for (const double share : shares) {
    lengths.push_back(least + static_cast<std::int64_t>(static_cast<double>(free_keys) * share / all));
  }
  lengths.back() += mean * count - sum(lengths);
  return lengths;
}

std::string sizes(const AttentionTask& task) {
  const AttentionProblem& p = task.problem;
  if (p.page_size == 0) {
    return two(p.queries, p.keys, ':');
  }
  const bool is_listed = task.lengths == SequenceLengths::listed;
  const std::int64_t parts = is_listed ? 1 : p.batch;
  return two(sum(task.query_lengths) / parts, sum(task.key_lengths) / parts, ':');
}

}  // namespace

Problem problem_of(AttentionTask task) { return {attention_operation(), std::move(task)}; }

AttentionTask completed(AttentionTask task) {
  AttentionProblem& p = task.problem;
  p.variable_length = true;
  p.batch = std::ssize(task.query_lengths);
  p.queries = sum(task.query_lengths);
  if (p.page_size == 0) {
    task.rows_first = true;
    p.keys = sum(task.key_lengths);
    return task;
  }
  std::int64_t used = 0;
  for (const std::int64_t keys : task.key_lengths) {
    used += ceil_div(keys, p.page_size);
  }
  constexpr std::int64_t used_of_an_unused = 16;
  p.pages = used + used / used_of_an_unused + 2;
  p.keys = *std::max_element(task.key_lengths.begin(), task.key_lengths.end()) + p.page_size;
  return task;
}

AttentionTask with_lengths(AttentionTask task, SequenceLengths lengths) {
  const AttentionProblem& p = task.problem;
  const auto count = static_cast<std::size_t>(p.batch);
  task.lengths = lengths;
  task.query_lengths.assign(count, p.queries);
  task.key_lengths = lengths == SequenceLengths::mixed
                         ? mixed_lengths(p.batch, p.keys, std::min(p.keys, std::max<std::int64_t>(p.queries, 1)))
                         : std::vector(count, p.keys);
  return completed(std::move(task));
}

std::string label_of(const AttentionTask& task) {
  const AttentionProblem& p = task.problem;
  std::string text = fmt::format("{}x{}x{}x{} {}", p.batch, two(p.heads, p.kv_heads, '/'), sizes(task),
                                 two(p.head_dim, effective_value_dim(p), '/'), name(p.format));
  text += p.kv_format ? fmt::format(" {} {}keys", name(*p.kv_format), p.q_format ? "queries and " : "") : "";
  text += p.causal ? " causal" : "";
  if (p.window_left >= 0 || p.window_right >= 0) {
    text += fmt::format(" window({},{})", p.window_left, p.window_right);
  }
  if (p.scale) {
    text += fmt::format(" scale({})", *p.scale);
  }
  if (p.softcap > 0) {
    text += fmt::format(" softcap({})", p.softcap);
  }
  text += p.sinks ? " sinks" : "";
  if (p.page_size > 0) {
    text += fmt::format(" pages({}){}", p.page_size, task.rows_first ? "" : " heads-first");
  }
  if (task.lengths == SequenceLengths::mixed) {
    text += " mixed";
  } else if (p.variable_length && task.lengths == SequenceLengths::listed) {
    text += fmt::format(" lengths({}:{})", lengths_text(task.query_lengths), lengths_text(task.key_lengths));
  } else if (!p.variable_length && task.rows_first) {
    text += " rows-first";
  }
  return text + (task.lse ? " lse" : "");
}

}  // namespace thresher::arena
