#pragma once
/// The tensor memory skeleton's requirements of an operation, checked before any other part of it is compiled. An
/// operation contains no barriers.
#include "pipeline/ring.hpp"
#include "pipeline/tensor_shape.hpp"
#include "pipeline/tensor_sums.hpp"

namespace thresher::pipeline {

/// One thread of the producer calls prefetch first, for the tensor maps. `tiles` counts them per cluster, `k_steps`
/// counts the stages of a tile; `member` of tile() is the block's index in its group. Profiles are written to
/// `profile`, when the shape has one.
template <class Operation>
concept TensorOperation = requires(const Operation& operation, const typename Operation::Tile& tile, u32 at) {
  requires Same<decltype(Operation::shape), const TensorShape>;
  requires Same<decltype(Operation::slot_load_bytes), const u32>;
  { operation.tiles() } -> Same<u32>;
  { operation.tile(at, at) } -> Same<typename Operation::Tile>;
  { operation.k_steps() } -> Same<u32>;
  { operation.prefetch() } -> Same<void>;
  { operation.profile() } -> Same<Global<u64>>;
};

/// One thread of the producer calls them for each stage; together their copies bring slot_load_bytes to each block of
/// the group. `load_constant` loads data that no earlier grid writes, `load_fresh` the rest.
template <class Operation>
concept LoadsTensors = requires {
  static_cast<void (Operation::*)(const LoadSlot&, const typename Operation::Tile&, u32) const>(
      &Operation::load_constant);
  static_cast<void (Operation::*)(const LoadSlot&, const typename Operation::Tile&, u32) const>(&Operation::load_fresh);
};

/// One thread of the group issues the products of a stage: they overwrite the accumulators if `first`, otherwise add to
/// them. `scales` are columns that no product reads any more.
template <class Operation>
concept MultipliesTensors = requires {
  static_cast<void (Operation::*)(Shared<u8>, tensor_memory::Columns, tensor_memory::Columns, bool) const>(
      &Operation::multiply);
};

/// The epilogue warps call `ahead` before a tile's accumulators are complete, and pass its result to finish. With split
/// K, `half` is the part of the columns that this block finishes.
template <class Operation>
concept LooksAheadOfTensors = requires {
  static_cast<typename Operation::Ahead (Operation::*)(const typename Operation::Tile&, u32, Shared<u32>) const>(
      &Operation::ahead);
};
template <class Operation>
concept FinishesTensors =
    requires(const Operation& operation, SumsOf<Operation::shape>& sums, const typename Operation::Tile& tile, u32 half,
             Shared<u8> staging, const typename Operation::Ahead& ahead) {
      { operation.finish(sums, tile, half, staging, ahead) } -> Same<void>;
    };

/// Rejects an operation that lacks a requirement, one sentence for each.
template <TensorOperation Operation>
struct CheckedTensorOperation {
  static constexpr TensorShape shape = Operation::shape;
  static_assert(shape.stages > 0 && shape.slot_bytes > 0 && shape.slot_bytes % 1024 == 0,
                "slots start at swizzle atoms: their bytes are a multiple of 1024");
  static_assert(used_columns(shape) <= static_cast<int>(tensor_memory::all_columns),
                "the sums and a set of scales for each slot take more than the 512 columns of tensor memory");
  static_assert(shared_bytes(shape) <= max_shared_bytes, "slots and staging take more than 227 KiB of shared memory");
  static_assert(shape.sums == (shape.persistent ? 2 : 1),
                "a persistent block finishes one accumulator while it fills another, and no other block does");
  static_assert(!shape.persistent || shape.split_groups == 1, "partial sums land in the slots");
  static_assert(LoadsTensors<Operation>,
                "there are no 'void load_constant(const LoadSlot&, const Tile&, u32 k_step) const' and 'load_fresh' "
                "alike");
  static_assert(MultipliesTensors<Operation>,
                "there is no 'void multiply(Shared<u8> slot, Columns sums, Columns scales, bool first) const'");
  static_assert(LooksAheadOfTensors<Operation>,
                "there is no 'Ahead ahead(const Tile&, u32 half, Shared<u32> scratch) const'");
  static_assert(FinishesTensors<Operation>,
                "there is no 'void finish(sums, const Tile&, u32 half, Shared<u8> staging, const Ahead&) const'");
};

}  // namespace thresher::pipeline
