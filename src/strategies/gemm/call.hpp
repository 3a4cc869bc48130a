#pragma once
/// How the GPU's strategies bind a product's call to its tensors: extents, groups, the parameters of the end, tensor
/// maps. Pure functions.
#include <cstdint>
#include <vector>

#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm {

/// A box of a tensor map.
struct MapBox {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  machine::Swizzle swizzle = machine::Swizzle::b128;
};
/// A row-major matrix of 16-bit or 32-bit elements, or a stack of one.
[[nodiscard]] machine::TensorMapDescription matrix_map(const Tensor& matrix, const MapBox& box);

/// TMA reads tokens and weights where they lie.
void read_in_place(PlannedCall& call);

/// Whether rows of C can be stored 16 bytes at a time. C itself begins on 16 bytes (PlannedCall::data_alignment).
[[nodiscard]] bool allows_wide_stores(const Tensor& c);

/// `rows` of C, of one slot where there are slots.
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

/// The first piece of a call's workspace, for a product of at most so many blocks; dense calls have none.
void add_status(const ProductProblem& problem, std::int64_t blocks, PlannedCall& call);

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

}  // namespace thresher::strategies::gemm
