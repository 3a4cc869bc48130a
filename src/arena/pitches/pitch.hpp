#pragma once
/// Pitches: TOML proposals. Each claims that a contestant beats a baseline, and states the terms that settle the claim.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arena/operation/contestant_spec.hpp"
#include "arena/pitches/kernel.hpp"
#include "arena/results/gate.hpp"

namespace thresher::arena {

/// The claimed speed-up as an interval; both ends equal when one number is claimed.
struct Claim {
  double speedup_low = 1;
  double speedup_high = 1;
  double confidence = 0.5;  ///< that the measured speed-up lies in it, 0 to 1
  std::string reason;
  std::string touches;  ///< the part of the kernel that changes; empty when not stated
};

struct PitchCost {
  std::optional<double> days;
  std::string risk;
};

/// All terms must hold. A term that a machine cannot judge prevents acceptance there.
struct Acceptance {
  std::optional<double> geomean_speedup;  ///< at least this over the suite; without it: more than 1, beyond the noise
  std::optional<double> each_speedup;     ///< at least this on every problem
  std::vector<GateKind> gates;            ///< must have passed, not merely not failed
  std::optional<double> shared_memory_bytes_below;
  bool occupancy_not_worse = false;
  std::optional<double> fall_back_below;  ///< the baseline stays under this speed-up
};

struct Pitch {
  std::string file;  ///< as given
  std::string text;  ///< as read
  std::string title;
  std::string author;
  ContestantSpec contestant;
  ContestantSpec baseline;
  Claim claim;
  PitchCost cost;
  Acceptance accept;
  std::optional<user_kernels::Kernel> kernel;  ///< the contestant, when it is a user kernel
  std::map<std::string, std::string>
      audit;  ///< expectations that replace the strategy's, as set_expectation takes them
  std::optional<double>
      abort_below_share;  ///< withdraw when the touched part takes a smaller share of the baseline's time
};

/// Throws Error(invalid_argument) with file, line and key.
[[nodiscard]] Pitch parse_pitch(std::string_view text, const std::string& file);
[[nodiscard]] Pitch load_pitch(const std::string& path);

/// JSON object for the ledger and the report.
[[nodiscard]] std::string to_json(const Pitch& pitch);

}  // namespace thresher::arena
