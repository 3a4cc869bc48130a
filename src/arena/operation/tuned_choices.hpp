#pragma once
/// What `plan` chooses by itself for an operation, and how it is told of what was measured to be faster.
#include <optional>
#include <string>

#include "arena/operation/contestant_spec.hpp"
#include "arena/operation/problem.hpp"
#include "core/device_spec.hpp"
#include "ops/tuning.hpp"
#include "thresher/knobs.hpp"

namespace thresher::arena {

/// The strategy that runs with all its knobs.
struct LaunchedChoice {
  std::string strategy;
  Knobs knobs;
  bool operator==(const LaunchedChoice&) const = default;
};

class TunedChoices {
 public:
  virtual ~TunedChoices() = default;
  /// What `plan` launches for a contestant, or by itself for one without a strategy; nothing where it cannot, as for a
  /// kernel that a user brought, or must be asked for the numerics.
  [[nodiscard]] virtual std::optional<LaunchedChoice> launched(const Problem& problem, const ContestantSpec& spec,
                                                               const DeviceSpec& device) const = 0;
  /// From now on `plan` chooses this contestant, which was measured beside its default.
  virtual void remember(ops::Tuning& tuning, const std::string& device, const Problem& problem,
                        const ContestantSpec& spec, double us, double default_us) const = 0;
  /// The default is the best after all.
  virtual void forget(ops::Tuning& tuning, const std::string& device, const Problem& problem) const = 0;
};

}  // namespace thresher::arena
