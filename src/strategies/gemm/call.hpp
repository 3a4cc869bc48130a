#pragma once
/// How the GPU's strategies bind a product's call to its tensors: extents, groups, the parameters of the end, tensor
/// maps. Pure functions.
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/integers.hpp"
#include "machine/tensor_map.hpp"
#include "pipeline/shape.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm {

/// Dimensions are listed from the innermost; it has no stride.
[[nodiscard]] machine::TensorMapDescription tensor_map(std::uint64_t address, machine::ElementType element,
                                                       machine::Swizzle swizzle,
                                                       std::initializer_list<std::uint64_t> extents,
                                                       std::initializer_list<std::uint64_t> strides,
                                                       std::initializer_list<std::uint32_t> box);

/// A box of a tensor map.
struct MapBox {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  machine::Swizzle swizzle = machine::Swizzle::b128;
};
/// A row-major matrix, or a stack of one.
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
/// Those of the largest call.
[[nodiscard]] CallExtents extents_of(const ProductProblem& problem);

/// Returns how many tiles the groups of a call can have at most, whatever their rows. The grid is made for that number.
[[nodiscard]] std::int64_t max_tiles(const CallExtents& extents, std::int64_t tile_rows, std::int64_t tile_outputs);

/// The first piece of a call's workspace, for a product of at most so many blocks; dense calls have none.
void add_status(const ProductProblem& problem, std::int64_t blocks, PlannedCall& call);

[[nodiscard]] GroupParams group_params(const CallTensors& call, std::int64_t tile_outputs);
/// Dynamic scales are written: with slots, a matrix for each. A static scale is read: with slots, one for each.
[[nodiscard]] OutputScaleParams output_scales(const Tensor& c);
[[nodiscard]] FinishParams finish_params(const ProductProblem& problem, const CallTensors& call);

/// Rows of `element`s at `address` as the kernels read operands: [slot or expert, row, k].
struct OperandRows {
  machine::ElementType element = machine::ElementType::bf16;
  std::uint64_t address = 0;
  std::int64_t k = 0;
  std::int64_t rows = 0;
  std::int64_t slots = 1;
  std::int64_t row_bytes = 0;
  std::int64_t slot_bytes = 0;
};
/// Boxes of one swizzle span × `box_rows`.
[[nodiscard]] machine::TensorMapDescription rows_map(const OperandRows& operand, std::uint32_t box_rows,
                                                     machine::Swizzle swizzle = machine::Swizzle::b128);
/// Tokens of 16 bits where they lie.
[[nodiscard]] OperandRows token_rows(const CallTensors& call, machine::ElementType element);

/// The launch of a kernel on wgmma, the only one of `program`, without what it reads, writes and binds.
[[nodiscard]] KernelLaunch product_launch(DeviceProgram program, const pipeline::Shape& shape, int blocks_resident,
                                          int shared_bytes);

/// Adds that a launch reads this memory of one matrix of weights, or of both.
void add_weight_reads(int matrices, Access::Memory memory, std::vector<Access>& accesses);
/// Adds what every product reads and writes beside tokens and weights. A profiled product writes timestamps too.
void add_common_accesses(const ProductProblem& problem, bool is_profiled, std::vector<Access>& accesses);

/// Sets the members that every parameter of a dense product with static tiles has.
template <class Params>
void set_static_tiles(const ProductProblem& problem, const CallTensors& call, int block_tokens, int tile_outputs,
                      Params& params) {
  const CallExtents extents = extents_of(call);
  const Tensor& c = output_of(call);
  params.c = {device_address(c.data)};
  params.profile = {profile_address(call)};
  params.c_row_stride = static_cast<std::uint64_t>(c.strides[0]);
  params.m = narrow(extents.rows);
  params.n = narrow(extents.n);
  params.c_wide = extents.n % 8 == 0 && c.strides[0] % 8 == 0 ? 1 : 0;
  params.token_tiles = narrow(ceil_div(extents.rows, block_tokens));
  params.output_tiles = narrow(ceil_div(extents.n, tile_outputs));
  if (problem.activation) {
    params.alpha = problem.activation->alpha;
    params.limit = problem.activation->limit;
    params.up_offset = problem.activation->up_offset;
  }
}

}  // namespace thresher::strategies::gemm
