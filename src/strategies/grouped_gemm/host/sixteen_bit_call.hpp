#pragma once
/// What a grouped GEMM in 16 bits launches, however its kernel multiplies.
#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/grouped/rung.hpp"
#include "pipeline/shape.hpp"
#include "strategies/dual_gemm/device/words.hpp"
#include "strategies/grouped_gemm/device/slot_layout.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm {

/// One configuration of one strategy.
struct SixteenBitKernel {
  std::string_view strategy{};
  Knobs knobs{};
  WorkModel work{};
  DeviceProgram program{};
  std::string expression{};
  pipeline::Shape shape{};
  pipeline::Rungs rungs{};
  dual_gemm::Number operand = dual_gemm::Number::bf16;
  int tile_outputs = 0;
  SlotLayout slots{};
  int least_products = 0;  ///< matrix instructions that its machine code holds at the least
  int blocks_resident = 1;
  bool dependent_launch = false;
};

/// Without obstacles. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const GroupedProblem& problem, const SixteenBitKernel& kernel,
                                       int multiprocessors);

}  // namespace thresher::strategies::grouped_gemm
