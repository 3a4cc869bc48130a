#include "planner/rank.hpp"

#include <algorithm>

namespace thresher::planner {
namespace {

template <class Problem, class Config>
Ranking<Config> rank_any(const Problem& problem, std::span<const Config> candidates, const DeviceSpec& device,
                         const Calibration& calibration, Clocks clocks) {
  Ranking<Config> out;
  for (const Config& config : candidates) {
    Feasibility judged = feasible(problem, config, device);
    if (judged.feasible()) {
      out.choices.push_back({config, predict(problem, config, device, calibration, clocks)});
    } else {
      out.refused.push_back({config, std::move(judged.obstacles)});
    }
  }
  std::stable_sort(out.choices.begin(), out.choices.end(), [](const Choice<Config>& a, const Choice<Config>& b) {
    return a.prediction.us() < b.prediction.us();
  });
  return out;
}

}  // namespace

DualGemmRanking rank(const DualGemmProblem& problem, std::span<const DualGemmConfig> candidates,
                     const DeviceSpec& device, const Calibration& calibration, Clocks clocks) {
  return rank_any<DualGemmProblem, DualGemmConfig>(problem, candidates, device, calibration, clocks);
}

AttentionRanking rank(const AttentionProblem& problem, std::span<const AttentionConfig> candidates,
                      const DeviceSpec& device, const Calibration& calibration, Clocks clocks) {
  return rank_any<AttentionProblem, AttentionConfig>(problem, candidates, device, calibration, clocks);
}

}  // namespace thresher::planner
