#pragma once
/// One contestant of attention as the planner sees it.
#include <cstdint>
#include <string>

#include "core/device_spec.hpp"
#include "thresher/attention.hpp"

namespace thresher::planner {

/// A block takes `query_rows` queries of one head and walks over its keys in steps of `key_step`.
struct AttentionConfig {
  int query_rows = 128;
  int key_step = 128;
  int stages = 2;  ///< of keys and values; as many as there are steps means no ring at all
  int math_warpgroups = 2;
  int split_keys = 1;  ///< blocks of a cluster that share the keys of the same queries
  int multicast = 1;   ///< blocks of a cluster that share the keys' loads
  int blocks_per_multiprocessor = 1;
  int loader_registers = 0;  ///< 0: no setmaxnreg
  int math_registers = 0;
  bool queries_in_registers = false;
  bool persistent = false;
  bool dependent_launch = false;
  bool operator==(const AttentionConfig&) const = default;

  [[nodiscard]] int cluster() const noexcept { return split_keys * multicast; }
  [[nodiscard]] int threads() const noexcept { return (math_warpgroups + 1) * 128; }
};

/// "128 queries, steps of 128 keys, 2 stages, …".
[[nodiscard]] std::string text(const AttentionConfig& config);

}  // namespace thresher::planner
