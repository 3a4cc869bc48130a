#pragma once
/// The knobs of the grouped GEMMs in 16 bits, and what follows from them.
///
/// Weights are the M side of wgmma, tokens the N side, which goes in steps of 8: a tile takes the least of 8, 16, 32 …
/// block_tokens columns that holds its rows. A math warpgroup owns 64 outputs, gate and up of each in sums of their own;
/// of one matrix twice 64 outputs.
#include "pipeline/shape.hpp"
#include "strategies/grouped_gemm/device/finish_params.hpp"

namespace thresher::strategies::grouped_gemm::columns {

using dual_gemm::ActivationCode;
using dual_gemm::Number;

struct Config {
  Number operand = Number::bf16;
  Number output = Number::bf16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  int math_warpgroups = 2;
  int block_tokens = 128;   ///< the most of a tile: 8, 16, 32, 64 or 128
  int block_k = 64;         ///< k elements of a slot, a multiple of 64
  int stages = 4;
  int blocks_resident = 1;   ///< thread blocks meant to share a multiprocessor
  int loader_registers = 0;  ///< with math_registers: the register hand-over; 0 for none
  int math_registers = 0;
  bool profiled = false;         ///< leaves timestamps of its roles in Params::profile
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// Elements of a 128-byte row: the width of a shared-memory panel.
inline constexpr int panel_k = 64;
inline constexpr int row_bytes = panel_k * 2;
/// Rows of weights of one of a warpgroup's two sums.
inline constexpr int sum_rows = 64;

TH_DEVICE constexpr int tile_outputs(const Config& c) {
  return c.math_warpgroups * sum_rows * (c.matrices == 2 ? 1 : 2);
}
/// Rows that one copy brings: those of all warpgroups' first, or second, sums.
TH_DEVICE constexpr int weight_box_rows(const Config& c) { return c.math_warpgroups * sum_rows; }
TH_DEVICE constexpr int token_panel_bytes(const Config& c) { return c.block_tokens * row_bytes; }
TH_DEVICE constexpr int weight_panel_bytes(const Config& c) { return 2 * weight_box_rows(c) * row_bytes; }
TH_DEVICE constexpr int panels(const Config& c) { return c.block_k / panel_k; }
TH_DEVICE constexpr int token_bytes(const Config& c) { return panels(c) * token_panel_bytes(c); }
TH_DEVICE constexpr int weight_bytes(const Config& c) { return panels(c) * weight_panel_bytes(c); }

TH_DEVICE constexpr FinishKnobs finish_knobs(const Config& c) {
  return {.output = c.output,
          .matrices = c.matrices,
          .activation = c.activation,
          .bias = c.bias,
          .row_weights = c.row_weights,
          .gathered = c.gathered};
}

TH_DEVICE constexpr pipeline::Shape shape_of(const Config& c) {
  return {
      .stages = c.stages,
      .slot_bytes = token_bytes(c) + weight_bytes(c),
      .staging_bytes = finish_staging_bytes(c.output, 2),
      .math_warpgroups = c.math_warpgroups,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .persistent = true,
      .release_early = true,
      .profiled = c.profiled,
  };
}

}  // namespace thresher::strategies::grouped_gemm::columns
