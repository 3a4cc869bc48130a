#pragma once
/// What the GPU's strategies of a grouped product have in common when a call is bound to its tensors: extents, groups,
/// the parameters of the end, tensor maps of tokens. Pure functions.
#include <cstdint>
#include <vector>

#include "machine/tensor_map.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/device/finish_params.hpp"
#include "strategies/grouped_gemm/device/groups.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::grouped_gemm {

/// Of one call: `rows` of C, of one slot where there are slots.
struct CallExtents {
  std::int64_t experts = 0;
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool has_slots = false;
};
[[nodiscard]] CallExtents extents_of(const CallTensors& call);

/// The most tiles that the groups of a call can have, whatever their rows: what the grid is made for.
[[nodiscard]] std::int64_t max_tiles(const CallExtents& extents, std::int64_t tile_rows, std::int64_t tile_outputs);

/// The first piece of a call's workspace, for a product of at most so many blocks.
std::size_t add_status(const ProductProblem& problem, std::int64_t blocks, PlannedCall& call);

[[nodiscard]] GroupParams group_params(const CallTensors& call, std::int64_t tile_outputs);
[[nodiscard]] FinishParams finish_params(const ProductProblem& problem, const CallTensors& call);

/// Rows of `element`s at `address` as the kernels read tokens: [slot, row, k].
struct TokenRows {
  machine::ElementType element = machine::ElementType::bf16;
  std::uint64_t address = 0;
  std::int64_t k = 0;
  std::int64_t rows = 0;
  std::int64_t slots = 1;
  std::int64_t row_bytes = 0;
  std::int64_t slot_bytes = 0;
};
/// Boxes of one swizzle span × `box_rows`.
[[nodiscard]] machine::TensorMapDescription tokens_map(const TokenRows& tokens, std::uint32_t box_rows,
                                                       machine::Swizzle swizzle = machine::Swizzle::b128);
/// Tokens of 16 bits where they lie.
[[nodiscard]] TokenRows token_rows(const CallTensors& call, machine::ElementType element);

/// What every product reads and writes beside tokens and weights.
void add_common_accesses(const ProductProblem& problem, std::vector<Access>& accesses);

}  // namespace thresher::strategies::grouped_gemm
