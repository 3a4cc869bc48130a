#pragma once
/// Choosing among contestants: a pure function that explains itself.
#include <span>
#include <string>
#include <vector>

#include "planner/feasible.hpp"
#include "planner/predict.hpp"

namespace thresher::planner {

template <class Config>
struct Choice {
  Config config;
  Prediction prediction;
};

template <class Config>
struct Refusal {
  Config config;
  std::vector<std::string> obstacles;
};

template <class Config>
struct Ranking {
  std::vector<Choice<Config>> choices;  ///< feasible, the fastest prediction first; equals in the order they came
  std::vector<Refusal<Config>> refused;
};

using DualGemmRanking = Ranking<DualGemmConfig>;
using AttentionRanking = Ranking<AttentionConfig>;

[[nodiscard]] DualGemmRanking rank(const DualGemmProblem& problem, std::span<const DualGemmConfig> candidates,
                                   const DeviceSpec& device, const Calibration& calibration = {},
                                   Clocks clocks = Clocks::burst);
[[nodiscard]] AttentionRanking rank(const AttentionProblem& problem, std::span<const AttentionConfig> candidates,
                                    const DeviceSpec& device, const Calibration& calibration = {},
                                    Clocks clocks = Clocks::burst);

/// The knob sets worth asking about on `device`, two_pass last.
[[nodiscard]] std::vector<DualGemmConfig> dual_gemm_candidates(const DualGemmProblem& problem,
                                                               const DeviceSpec& device);
[[nodiscard]] std::vector<AttentionConfig> attention_candidates(const AttentionProblem& problem,
                                                                const DeviceSpec& device);

}  // namespace thresher::planner
