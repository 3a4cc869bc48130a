#pragma once
/// What a grouped GEMM of plain operands launches, in 16 bits or in FP8, however its kernel multiplies.
#include <cstdint>
#include <string>
#include <string_view>

#include "machine/tensor_map.hpp"
#include "pipeline/grouped/rung.hpp"
#include "strategies/dual_gemm/device/words.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::grouped_gemm {

/// What a copy brings of weights and of tokens: rows of one swizzle span.
struct PlainBoxes {
  machine::Swizzle swizzle = machine::Swizzle::b128;
  int weight_rows = 0;
  std::uint32_t many_token_rows = 0;  ///< of the larger box of tokens
};

struct PlainBlock {
  int threads = 0;
  int cluster = 1;  ///< blocks that take tiles together
  int resident = 1;
  int shared_bytes = 0;
  std::uint32_t registers = 0;  ///< as KernelLaunch has them
  bool profiled = false;
};

/// One configuration of one strategy.
struct PlainKernel {
  std::string_view strategy{};
  Knobs knobs{};
  WorkModel work{};
  DeviceProgram program{};
  std::string expression{};
  dual_gemm::Number operand = dual_gemm::Number::bf16;
  dual_gemm::Scaling token_scaling = dual_gemm::Scaling::none;
  dual_gemm::Scaling weight_scaling = dual_gemm::Scaling::none;
  int matrices = 2;
  pipeline::TileWidths tile_widths{};
  int tile_outputs = 0;
  PlainBoxes boxes{};
  PlainBlock block{};
  bool dependent_launch = false;
  Expectations expected{};
};

/// Without obstacles. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const PlainKernel& kernel, int multiprocessors);

}  // namespace thresher::strategies::grouped_gemm
