#pragma once
/// Pitches on a card with tensor memory: those that run there as they stand, and the origin's, which are of Hopper's
/// kernels, as the ideas that they are.
#include <span>
#include <string>

#include "arena/pitches/pitch.hpp"
#include "planner/choose.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

struct PredictedPitch {
  std::string here;        ///< what the idea is on this card
  std::string contestant;  ///< strategy and knobs
  std::string baseline;
  double speedup = 1;  ///< geometric mean over the problems
  double low = 1;
  double high = 1;
  planner::Bound bound = planner::Bound::matrix;  ///< of the baseline, on the first problem
};

/// Whether contestant and baseline both run on `device` with the knobs that they name.
[[nodiscard]] bool runs_as_it_stands(const Pitch& pitch, std::span<const DualGemmProblem> problems,
                                     const DeviceSpec& device);

/// Throws Error(invalid_argument) for a pitch that neither runs there nor has an idea that was carried over, which its
/// file's name says.
[[nodiscard]] PredictedPitch predict_pitch(const Pitch& pitch, std::span<const DualGemmProblem> problems,
                                           const DeviceSpec& device);

[[nodiscard]] planner::Request request_of(const ContestantSpec& spec);

/// The choice that is ranked first. Throws Error(unsupported) when nothing can run.
[[nodiscard]] planner::Choice best_choice(const DualGemmProblem& problem, const planner::Request& request,
                                          const DeviceSpec& device);

}  // namespace thresher::arena
