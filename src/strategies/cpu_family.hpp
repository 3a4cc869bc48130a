#pragma once
/// The base of families of this CPU's functions, which run every problem of their operation.
#include <optional>
#include <string>
#include <vector>

#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies {

struct CpuConfig {
  int threads = 0;  ///< 0: all
};

template <class Problem>
struct CpuFamily : FamilyDefaults<Problem, CpuConfig> {
  static constexpr DeviceKind device_kind = DeviceKind::cpu;
  static constexpr Overrides overrides{.device_kind = true};

  static const KnobTable<CpuConfig>& knob_table() {
    constexpr int max_threads = 1024;
    static const KnobTable<CpuConfig> table{
        "", {range("threads", &CpuConfig::threads, 0, max_threads, 1, "threads to use; 0: all")}};
    return table;
  }
  static std::optional<std::string> unsupported_reason(const Problem&, const DeviceSpec&) { return std::nullopt; }
  static std::vector<std::string> infeasible_reasons(const Problem&, const CpuConfig&, const DeviceSpec&) { return {}; }
};

}  // namespace thresher::strategies
