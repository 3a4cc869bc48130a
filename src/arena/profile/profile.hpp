#pragma once
/// Explains a kernel's time: a timeline of its roles, and an upper limit of each part's cost.
#include <string>
#include <vector>

#include "arena/operation/operation.hpp"
#include "arena/profile/timeline.hpp"
#include "arena/rig/rig.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

/// The whole kernel beside a variant that leaves a part out, or does it twice.
struct PartCost {
  std::string part;     ///< "epilogue", "products", "loads"
  std::string variant;  ///< "left out", "done twice"
  double us = 0;        ///< per call of the variant
  /// The possible gain from the part, or the cost of doing it again, as a share of the whole kernel's time.
  Estimate share;
};

struct Profile {
  std::string contestant;  ///< strategy and knobs
  std::string problem;
  std::string machine;
  double us = 0;  ///< per call of the whole kernel, cold, without timestamps
  Timeline timeline;
  std::vector<PartCost> parts;
};

struct ProfileOptions {
  PlanRequest request;  ///< selects the kernel
  int rounds = 15;
  double rest_s = 0.02;  ///< before each sample
};

/// Throws Error(unsupported) when the rig is no GPU or no kernel for the problem supports profiling.
[[nodiscard]] Profile profile(Rig& rig, const Problem& problem, const ProfileOptions& options);

/// JSON object, as the report reads it.
[[nodiscard]] std::string to_json(const Profile& profile, int indent = -1);
/// A table for people.
[[nodiscard]] std::string to_text(const Profile& profile);

}  // namespace thresher::arena
