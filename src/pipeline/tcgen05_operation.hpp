#pragma once
/// The requirements of the tcgen05 skeleton on an operation, checked before anything else of it is compiled. An
/// operation says nothing about barriers.
#include "pipeline/grouped/directory.hpp"
#include "pipeline/grouped/tensor_chunks.hpp"
#include "pipeline/grouped/tensor_groups.hpp"
#include "pipeline/grouped/tensor_split.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/tensor_shape.hpp"
#include "pipeline/tensor_sums.hpp"

namespace thresher::pipeline {

/// A block's place in its cluster.
struct BlockPlace {
  u32 member;  ///< of the group that shares a product; 0 leads it
  u32 half;    ///< which part of the k range
};

/// One producer thread calls prefetch first of all, to bring tensor maps near. `k_steps` counts the slots that a tile
/// takes. Profiles go where `profile` says, when the shape asks for one.
template <class Operation>
concept TensorOperation = requires(const Operation& operation) {
  requires Same<decltype(Operation::shape), const TensorShape>;
  typename Operation::Tile;
  { operation.k_steps() } -> Same<u32>;
  { operation.prefetch() } -> Same<void>;
  { operation.profile() } -> Same<Global<u64>>;
};

/// An operation with static tiles: `tiles` counts them for each cluster; `member` of tile() is the block's place in its
/// group.
template <class Operation>
concept CountsTiles = requires(const Operation& operation, u32 at) {
  { operation.tiles() } -> Same<u32>;
  { operation.tile(at, at) } -> Same<typename Operation::Tile>;
};

/// An operation on groups whose rows only the device knows. The producer warp's lanes together call `inspect`, where
/// the operation `inspects`, for one tile of each stretch of rows; it gives flags. One thread `report`s them at the end
/// with what was wrong with the bounds: of every block where the operation inspects, else of the first. A tile's sums
/// are `accumulators`, each of the widest tile's columns behind the one before.
template <class Operation>
concept TakesGroups = requires(const Operation& operation, const GroupTile& tile, u32 flags) {
  requires Same<decltype(Operation::tile_widths), const TileWidths>;
  requires Same<decltype(Operation::inspects), const bool>;
  requires Same<decltype(Operation::accumulators), const int>;
  { operation.groups() } -> Same<const Groups&>;
  { operation.inspect(tile) } -> Same<u32>;
  { operation.report(flags) } -> Same<void>;
};

/// One producer thread calls them for each slot; together their copies bring slot_load_bytes(tile) to each block of the
/// group. No earlier grid writes what `load_weights` brings. `member` is the block's place in its group.
template <class Operation>
concept LoadsTensors = requires(const Operation& operation, const typename Operation::Tile& tile) {
  static_cast<void (Operation::*)(const LoadSlot&, const typename Operation::Tile&, u32, u32) const>(
      &Operation::load_weights);
  static_cast<void (Operation::*)(const LoadSlot&, const typename Operation::Tile&, u32, u32) const>(
      &Operation::load_tokens);
  { operation.slot_load_bytes(tile) } -> Same<u32>;
};

/// One thread of the group issues the products of a slot: they start the sums anew where `first`, else add to them.
/// `scales` are columns that no product reads any more. `tile_width` is of groups: the products' columns.
template <class Operation>
concept MultipliesTensors = requires {
  static_cast<void (Operation::*)(Shared<u8>, tensor_memory::Columns, tensor_memory::Columns, u32, bool) const>(
      &Operation::multiply);
};

/// The finishing warps call `ahead` before a tile's sums are there, and give finish its result.
template <class Operation>
concept LooksAheadOfTensors = requires {
  static_cast<typename Operation::Ahead (Operation::*)(const typename Operation::Tile&, const BlockPlace&, Shared<u32>)
                  const>(&Operation::ahead);
};
/// `finish` is called once for a static tile, with all sums that the block finishes; of groups for some columns at a
/// time, those from `first` on.
template <class Operation, class Sums>
concept FinishesTensors =
    requires(const Operation& operation, const Sums& sums, const typename Operation::Tile& tile, u32 first,
             const BlockPlace& place, Shared<u8> staging, const typename Operation::Ahead& ahead) {
      { operation.finish(sums, tile, first, place, staging, ahead) } -> Same<void>;
    };

/// The further requirements on static tiles and on groups.
template <class Operation, bool is_grouped>
struct CheckedTensorTiles {
  static constexpr TensorShape shape = Operation::shape;
  static_assert(CountsTiles<Operation>);
  static_assert(shared_bytes(shape) <= max_shared_bytes, "slots and staging take more than 227 KiB of shared memory");
  static_assert(!shape.persistent || shape.split_groups == 1, "partial sums land in the slots");
  using Sums = SumsOf<shape>;
};
template <class Operation>
struct CheckedTensorTiles<Operation, true> {
  static constexpr TensorShape shape = Operation::shape;
  static_assert(shape.persistent && shape.ablation == Ablation::none);
  static_assert(shape.sum_columns == Operation::accumulators * static_cast<int>(Operation::tile_widths.most));
  static_assert(shape.split_groups == 1 || Operation::tile_widths.most <= max_split_columns,
                "the sums of a tile whose k range is split are held in registers");
  using Sums = TensorChunks<Operation::accumulators, 16>;
};

/// Refuses an operation that lacks something, one sentence for each.
template <TensorOperation Operation, bool is_grouped>
struct CheckedTensorOperation {
  static constexpr TensorShape shape = Operation::shape;
  static_assert(shape.stages > 0 && shape.slot_bytes > 0 && shape.slot_bytes % 1024 == 0,
                "slots start at swizzle atoms: their bytes are a multiple of 1024");
  static_assert(used_columns(shape) <= static_cast<int>(tensor_memory::all_columns),
                "the sums and a set of scales for each slot take more than the 512 columns of tensor memory");
  static_assert(shape.sums == (shape.persistent ? 2 : 1),
                "a persistent block finishes one accumulator while it fills another, and no other block does");
  static_assert(LoadsTensors<Operation>,
                "there are no 'void load_weights(const LoadSlot&, const Tile&, u32 k_step, u32 member) const', "
                "'load_tokens' alike and 'u32 slot_load_bytes(const Tile&) const'");
  static_assert(MultipliesTensors<Operation>,
                "there is no 'void multiply(Shared<u8> slot, Columns sums, Columns scales, u32 tile_width, bool first) "
                "const'");
  static_assert(LooksAheadOfTensors<Operation>,
                "there is no 'Ahead ahead(const Tile&, const BlockPlace&, Shared<u32> scratch) const'");
  static_assert(FinishesTensors<Operation, typename CheckedTensorTiles<Operation, is_grouped>::Sums>,
                "there is no 'void finish(sums, const Tile&, u32 first, const BlockPlace&, Shared<u8> staging, const "
                "Ahead&) const'");
};

}  // namespace thresher::pipeline
