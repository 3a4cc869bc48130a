#include "strategies/attention/one_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/integers.hpp"

namespace thresher::strategies::attention {
namespace {

bool has(const std::vector<std::int64_t>& dims, std::int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

}  // namespace

Abilities all_abilities(const std::vector<std::int64_t>& dims) {
  return {.pages = true, .sinks = true, .fp8_keys = true, .fp8_queries = true, .head_dims = dims, .value_dims = dims};
}

std::vector<std::string> beyond(const Abilities& abilities, const AttentionProblem& problem) {
  std::vector<std::string> all;
  if (problem.page_size > 0 && !abilities.pages) {
    all.push_back(fmt::format("it takes no paged KV cache, problem.page_size is {}", problem.page_size));
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

std::vector<std::string> beyond(const Geometry& geometry, const AttentionProblem& problem, const DeviceSpec& device) {
  std::vector<std::string> all;
  for (const auto& [argument, rows] : {std::pair{"queries", problem.queries}, std::pair{"keys", problem.keys}}) {
    if (rows >= max_rows) {
      all.push_back(fmt::format("problem.{} is {}, a GPU takes less than {}", argument, rows, max_rows));
    }
  }
  if (geometry.shared_bytes > static_cast<std::uint32_t>(device.shared_bytes_per_block)) {
    all.push_back(fmt::format("it needs {} bytes of shared memory, a block of {} has {}", geometry.shared_bytes,
                              device.name, device.shared_bytes_per_block));
  }
  return all;
}

std::optional<std::string> unless_hopper(std::string_view strategy, const DeviceSpec& device) {
  if (device.matrix_unit == MatrixUnit::wgmma) {
    return std::nullopt;
  }
  return fmt::format("attention's {} runs on GPUs of compute capability 9.0 (Hopper), not on {}", strategy,
                     device.name);
}

std::optional<std::string> unless_pages_on_hopper(std::string_view strategy, const AttentionProblem& problem,
                                                  const DeviceSpec& device) {
  std::optional<std::string> reason = unless_hopper(strategy, device);
  if (!reason && problem.page_size == 0) {
    reason = fmt::format("attention's {} takes a paged KV cache, problem.page_size is 0", strategy);
  }
  return reason;
}

std::vector<Sample<AttentionProblem>> long_sequences() {
  std::vector<Sample<AttentionProblem>> all;
  for (const Format format : {Format::fp16, Format::bf16}) {
    for (const std::int64_t head_dim : {64, 128}) {
      all.push_back({{.queries = 4096, .keys = 4096, .head_dim = head_dim, .format = format}, {}});
    }
  }
  return all;
}

AttentionProblem dense_like(const AttentionProblem& problem, std::int64_t queries, std::int64_t keys) {
  return {.heads = 2,
          .kv_heads = 2,
          .queries = queries,
          .keys = keys,
          .head_dim = problem.head_dim,
          .value_dim = problem.value_dim,
          .format = problem.format,
          .softcap = has_general_logits(problem) ? 2.0F : 0.0F};
}

std::vector<AttentionProblem> ragged_like(const AttentionProblem& problem, std::int64_t tile_rows, std::int64_t keys) {
  AttentionProblem causal = dense_like(problem, tile_rows + 3, keys);
  causal.causal = true;
  causal.batch = 2;
  causal.heads = causal.kv_heads = 1;
  AttentionProblem window = dense_like(problem, 75, 60);
  window.window_left = 10;
  window.window_right = 20;
  window.heads = 4;
  AttentionProblem lengths =
      dense_like(problem, std::min<std::int64_t>(tile_rows, 128) + 9, std::min<std::int64_t>(keys, 203) + 87);
  lengths.batch = 4;
  lengths.causal = true;
  lengths.variable_length = true;
  return {causal, window, lengths};
}

AttentionProblem in_pages(AttentionProblem problem, std::int64_t page) {
  problem.variable_length = true;
  problem.causal = true;
  problem.page_size = page;
  problem.pages = problem.batch * ceil_div(problem.keys, page);
  return problem;
}

AttentionProblem paged_like(const AttentionProblem& problem, const PagedExtents& extents) {
  AttentionProblem small = problem;
  small.batch = extents.batch;
  small.kv_heads = std::min(problem.kv_heads, extents.max_kv_heads);
  small.heads = std::min(problem.heads / problem.kv_heads, extents.max_group) * small.kv_heads;
  small.queries = extents.queries;
  small.keys = extents.keys;
  small.pages = extents.batch * ceil_div(extents.keys, problem.page_size);
  return small;
}

}  // namespace thresher::strategies::attention
