#pragma once
/// The origin's pitches, which are of Hopper's kernels, as ideas about a card with tensor memory.
#include <span>
#include <string>

#include "arena/pitches/pitch.hpp"
#include "planner/choose.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

struct ForetoldPitch {
  std::string here;        ///< what the idea is on this card
  std::string contestant;  ///< strategy and knobs
  std::string baseline;
  double speedup = 1;  ///< geometric mean over the problems
  double low = 1;
  double high = 1;
  planner::Bound bound = planner::Bound::matrix;  ///< of the baseline, on the first problem
};

/// Throws Error(invalid_argument) for a pitch whose idea was not carried over, which its file's name says.
[[nodiscard]] ForetoldPitch foretell_pitch(const Pitch& pitch, std::span<const DualGemmProblem> problems,
                                           const DeviceSpec& device);

/// What is ranked first. Throws Error(unsupported) when nothing can run.
[[nodiscard]] planner::Choice best_choice(const DualGemmProblem& problem, const planner::Request& request,
                                          const DeviceSpec& device);

}  // namespace thresher::arena
