#include "strategies/attention/abilities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace thresher::strategies::attention {

namespace {

bool has(const std::vector<std::int64_t>& dims, std::int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

}  // namespace

Abilities of_any_width() {
  return {.pages = true, .sinks = true, .head_dims = {64, 128, 192, 256}, .value_dims = {64, 128, 192, 256}};
}

std::vector<std::string> beyond(const Abilities& abilities, const AttentionProblem& problem) {
  std::vector<std::string> all;
  if (problem.page_size > 0 && !abilities.pages) {
    all.push_back(fmt::format("it takes no keys in pages, problem.page_size is {}", problem.page_size));
  }
  if (problem.sinks && !abilities.sinks) {
    all.emplace_back("it takes no sinks, problem.sinks is true");
  }
  const Format keys = effective_kv_format(problem);
  if (keys != problem.format && !abilities.fp8_keys) {
    all.push_back(fmt::format("it takes keys and values in {} like the queries, problem.kv_format is {}",
                              name(problem.format), name(keys)));
  }
  if (effective_q_format(problem) != problem.format && !abilities.fp8_queries) {
    all.push_back(fmt::format("it takes queries in {} like the output, problem.q_format is {}", name(problem.format),
                              name(effective_q_format(problem))));
  }
  const std::int64_t value_dim = effective_value_dim(problem);
  if (value_dim != problem.head_dim && !has(abilities.value_dims, value_dim)) {
    all.push_back(abilities.value_dims.empty()
                      ? fmt::format("it takes values as wide as keys, which are {}, problem.value_dim is {}",
                                    problem.head_dim, value_dim)
                      : fmt::format("it takes a value_dim of {}, problem.value_dim is {}",
                                    fmt::join(abilities.value_dims, " or "), value_dim));
  }
  if (!has(abilities.head_dims, problem.head_dim)) {
    all.push_back(fmt::format("it takes a head_dim of {}, problem.head_dim is {}",
                              fmt::join(abilities.head_dims, " or "), problem.head_dim));
  }
  return all;
}

}  // namespace thresher::strategies::attention
