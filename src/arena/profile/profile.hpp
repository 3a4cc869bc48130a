#pragma once
/// Where a kernel's time goes: a timeline of its roles, and what each part could give back at most.
#include <string>
#include <vector>

#include "arena/operation/operation.hpp"
#include "arena/profile/timeline.hpp"
#include "arena/rig/rig.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

/// The whole kernel beside one that leaves a part out, or does it twice.
struct PartCost {
  std::string part;     ///< "epilogue", "products", "loads"
  std::string variant;  ///< "left out", "done twice"
  double us = 0;        ///< a call of the variant
  /// What the part could give back at most, or what doing it again costs, as a share of the whole kernel's time.
  Estimate share;
};

struct Profile {
  std::string contestant;  ///< strategy and knobs
  std::string problem;
  std::string machine;
  double us = 0;  ///< a call of the whole kernel, cold, without timestamps
  Timeline timeline;
  std::vector<PartCost> parts;
};

struct ProfileOptions {
  PlanRequest request;  ///< of which kernel
  int rounds = 15;
  double rest_s = 0.02;  ///< before each sample
};

/// Throws Error(unsupported) when the rig is no GPU or no kernel for the problem can be looked into.
[[nodiscard]] Profile profile(Rig& rig, const Problem& problem, const ProfileOptions& options);

/// JSON object, as the report takes it.
[[nodiscard]] std::string to_json(const Profile& profile, int indent = -1);
/// A table for people.
[[nodiscard]] std::string to_text(const Profile& profile);

}  // namespace thresher::arena
