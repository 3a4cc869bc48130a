#include "strategies/attention/abilities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace thresher::strategies::attention {

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
  if (effective_value_dim(problem) != problem.head_dim && !abilities.value_dims) {
    all.push_back(fmt::format("it takes values as wide as keys, which are {}, problem.value_dim is {}",
                              problem.head_dim, problem.value_dim));
  }
  const auto& head_dims = abilities.head_dims;
  if (std::find(head_dims.begin(), head_dims.end(), problem.head_dim) == head_dims.end()) {
    all.push_back(fmt::format("it takes a head_dim of {}, problem.head_dim is {}", fmt::join(head_dims, " or "),
                              problem.head_dim));
  }
  return all;
}

}  // namespace thresher::strategies::attention
