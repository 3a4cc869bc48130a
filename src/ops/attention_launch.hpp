#pragma once
/// How an attention kernel is launched: shapes, parameters, tensor maps. Pure functions, for the GPU and the emulator.
#include "ops/attention_choice.hpp"
#include "strategies/attention/program.hpp"

namespace thresher::ops {

/// Lengths stay below it, so that the kernels' 32-bit sums of lengths and windows cannot overflow.
inline constexpr std::int64_t most_attention_rows = std::int64_t{1} << 28;

/// Rows, columns and blocks as a strategy copies and launches them.
struct AttentionGeometry {
  std::int64_t tile_rows = 0;  ///< queries of one piece of work
  int query_box_rows = 0;      ///< what one copy brings
  int key_box_rows = 0;
  int key_box_panels = 0;
  unsigned threads = 0;
  unsigned cluster = 1;
  unsigned shared_bytes = 0;
  bool persistent = false;  ///< fewer blocks may take all the work
  bool copies = true;       ///< uses tensor maps
};
AttentionGeometry attention_geometry(const AttentionChoice& choice);

strategies::attention::Logits attention_logits(const AttentionProblem& problem);
strategies::DeviceProgram attention_program(const AttentionProblem& problem, const AttentionChoice& choice);

/// What the problem alone determines.
strategies::attention::Params attention_constants(const AttentionProblem& problem, const AttentionGeometry& geometry);
/// Adds the tensors of one call, all but their maps.
void add_tensors(strategies::attention::Params& params, const AttentionProblem& problem,
                 const AttentionTensors& tensors);

/// Blocks along x, y and z, one for each piece of work.
struct AttentionGrid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};
AttentionGrid attention_grid(const AttentionProblem& problem, const AttentionChoice& choice,
                             const AttentionGeometry& geometry, const strategies::attention::Params& constants);

/// 64 columns, rows, panels of 64 columns, heads, batch. `tensor` has elements: of one without, nothing is copied.
machine::TensorMapDescription query_map(const AttentionProblem& problem, const AttentionGeometry& geometry,
                                        const Tensor& tensor);
machine::TensorMapDescription key_map(const AttentionProblem& problem, const AttentionGeometry& geometry,
                                      const Tensor& tensor);

}  // namespace thresher::ops
