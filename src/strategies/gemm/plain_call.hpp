#pragma once
/// The launch of a product of plain operands, in 16 bits or in FP8, however its kernel multiplies.
#include <cstdint>
#include <string>
#include <string_view>

#include "machine/tensor_map.hpp"
#include "pipeline/grouped/groups.hpp"
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/gemm/device/slot_layout.hpp"
#include "strategies/gemm/device/words.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/launch_registers.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm {

/// The weights and the tokens that a copy loads: rows of one swizzle span.
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

/// One configuration of a kernel.
struct PlainKernel {
  DeviceProgram program{};
  std::string expression{};
  Number operand = Number::bf16;
  Scaling token_scaling = Scaling::none;
  Scaling weight_scaling = Scaling::none;
  int matrices = 2;
  pipeline::TileWidths tile_widths{};
  int tile_outputs = 0;
  PlainBoxes boxes{};
  PlainBlock block{};
  bool dependent_launch = false;
  Expectations expected{};
};

inline PlainBoxes boxes_of(const SlotLayout& slots, const pipeline::TileWidths& tile_widths) {
  return {slots.swizzle(), slots.weight_rows, pipeline::many_token_rows(tile_widths)};
}
inline PlainBlock block_of(const pipeline::Shape& shape, int resident, std::int64_t experts) {
  const int threads = pipeline::threads(shape);
  return {.threads = threads,
          .resident = resident,
          .shared_bytes = pipeline::grouped_shared_bytes(shape, static_cast<std::uint32_t>(experts)),
          .registers = registers_at_launch(threads * resident, shape.loader_registers, shape.math_registers),
          .profiled = shape.profiled};
}

/// The scales of an operand; null where there are none, or where the one is 1.
[[nodiscard]] machine::Global<float> scales_of(Scaling scaling, const Tensor& view);
/// Adds that a launch reads them, where there are some.
void add_scales(std::size_t tensor, Scaling scaling, Access::Use use, std::vector<Access>& accesses);

/// The kernel is feasible. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const PlainKernel& kernel, int multiprocessors);

}  // namespace thresher::strategies::gemm
