#pragma once
/// The contestants that can be entered on a device.
#include <memory>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "core/device_spec.hpp"
#include "thresher/device.hpp"

namespace thresher::arena {

class Registry {
 public:
  virtual ~Registry() = default;
  /// The strategies of an operation, the baseline first; empty when the device has none.
  [[nodiscard]] virtual std::vector<std::string> strategies(const std::string& operation) const = 0;
  /// Throws Error(invalid_argument) for an unknown strategy, knob or value, and names the valid ones.
  [[nodiscard]] virtual std::unique_ptr<Contestant> create(const ContestantSpec& spec) const = 0;
};

/// Thresher's own strategies through the public API.
[[nodiscard]] std::unique_ptr<Registry> library_registry(const Device& device);

/// The same on a card of the planner's table that is not here: only gates that run nothing judge, up to `race-free`.
[[nodiscard]] std::unique_ptr<Registry> card_registry(const DeviceSpec& card);

}  // namespace thresher::arena
