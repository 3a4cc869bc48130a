#pragma once
/// What a contestant takes of a multiprocessor, and whether it can exist there at all: gate "feasible".
#include <cstdint>
#include <string>
#include <vector>

#include "planner/attention_config.hpp"
#include "planner/dual_gemm_config.hpp"

namespace thresher::planner {

/// What one block takes.
struct Resources {
  std::int64_t stage_bytes = 0;
  std::int64_t shared_bytes = 0;  ///< all stages, staging of the epilogue, barriers
  int registers_per_thread = 0;   ///< that a math thread needs, estimated
  int registers_available = 0;    ///< that a math thread gets
  int threads = 0;
  int tensor_memory_columns = 0;
};

/// Each obstacle is one sentence with the number and the limit; feasible when there is none.
struct Feasibility {
  std::vector<std::string> obstacles;
  Resources resources;
  [[nodiscard]] bool feasible() const noexcept { return obstacles.empty(); }
};

/// `problem` is valid (ops/validate.hpp). The library strategy `two_pass` is always feasible.
[[nodiscard]] Feasibility feasible(const DualGemmProblem& problem, const DualGemmConfig& config,
                                   const DeviceSpec& device);
[[nodiscard]] Feasibility feasible(const AttentionProblem& problem, const AttentionConfig& config,
                                   const DeviceSpec& device);

}  // namespace thresher::planner
