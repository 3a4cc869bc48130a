#pragma once
/// The launch of a product of plain operands, in 16 bits or in FP8, however its kernel multiplies.
#include <cstdint>
#include <optional>
#include <vector>

#include "machine/tensor_map.hpp"
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/gemm/device/slot_layout.hpp"
#include "strategies/gemm/device/words.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm {

/// The weights and the tokens that a copy loads: rows of one swizzle span.
struct PlainBoxes {
  machine::Swizzle swizzle = machine::Swizzle::b128;
  int weight_rows = 0;
  std::uint32_t many_token_rows = 0;  ///< of the larger box of tokens
};

/// One configuration of a kernel.
struct PlainKernel {
  KernelLaunch launch{};  ///< without what it reads, writes and binds
  Number operand = Number::bf16;
  Scaling token_scaling = Scaling::none;
  Scaling weight_scaling = Scaling::none;
  int matrices = 2;
  pipeline::TileWidths tile_widths{};
  int tile_outputs = 0;
  PlainBoxes boxes{};
  int blocks_resident = 1;
  bool profiled = false;
};

inline PlainBoxes boxes_of(const SlotLayout& slots, const pipeline::TileWidths& tile_widths) {
  return {slots.swizzle(), slots.weight_rows, pipeline::many_token_rows(tile_widths)};
}

/// The scales of an operand; null where there are none, or where the one is 1.
[[nodiscard]] machine::Global<float> scales_of(Scaling scaling, const Tensor& view);
/// The accesses of a product of plain operands. It reads tokens where they lie, or gathered ones.
[[nodiscard]] std::vector<Access> plain_accesses(const ProductProblem& problem, const PlainKernel& kernel,
                                                 const std::optional<RowsInWorkspace>& gathered = std::nullopt);

/// The kernel is feasible. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const PlainKernel& kernel, int multiprocessors);

}  // namespace thresher::strategies::gemm
