#pragma once
/// The samples of one problem in one mode, as the ledger keeps them and reports show them.
#include <cstddef>
#include <string>
#include <vector>

#include "arena/timing/clock.hpp"
#include "arena/timing/rotation.hpp"

namespace thresher::arena {

/// Microseconds per call.
struct ModeSamples {
  std::size_t calls_per_sample = 0;
  std::vector<double> baseline_us;
  std::vector<double> baseline_again_us;
  std::vector<double> contestant_us;  ///< empty: the contestant is the baseline
  std::vector<double> seen_us;        ///< the contestant's, on inputs that it had seen; in no round
  std::vector<Telemetry> telemetry;   ///< after each sample of a round
  Rotation rotation;
};

/// JSON object.
[[nodiscard]] std::string to_json(const ModeSamples& samples);

}  // namespace thresher::arena
