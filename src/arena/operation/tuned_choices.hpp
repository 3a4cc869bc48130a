#pragma once
/// The choices of `plan` for an operation, and how measured winners override them.
#include <optional>
#include <string>

#include "arena/operation/contestant_spec.hpp"
#include "arena/operation/problem.hpp"
#include "core/device_spec.hpp"
#include "ops/tuning.hpp"
#include "thresher/knobs.hpp"

namespace thresher::arena {

/// The strategy of a launch, with all its knobs.
struct LaunchedChoice {
  std::string strategy;
  Knobs knobs;
  bool operator==(const LaunchedChoice&) const = default;
};

class TunedChoices {
 public:
  virtual ~TunedChoices() = default;
  /// The launch that `plan` chooses for a contestant, or by default for one without a strategy. Empty where `plan`
  /// cannot launch it, as for a user kernel, or needs the numerics to be asked for.
  [[nodiscard]] virtual std::optional<LaunchedChoice> launched(const Problem& problem, const ContestantSpec& spec,
                                                               const DeviceSpec& device) const = 0;
  /// From now on `plan` chooses this contestant, whose time was measured beside the default's.
  virtual void remember(ops::Tuning& tuning, const std::string& device, const Problem& problem,
                        const ContestantSpec& spec, double us, double default_us) const = 0;
  /// Restores the default, which is the best after all.
  virtual void forget(ops::Tuning& tuning, const std::string& device, const Problem& problem) const = 0;
};

}  // namespace thresher::arena
