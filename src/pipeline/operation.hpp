#pragma once
/// The skeleton's requirements of an operation, checked before any other part of it is compiled. An operation contains
/// no barriers.
#include "machine/matrix_engine.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

/// The optional members of an operation: `static constexpr Hooks hooks{.prepare = true};`. The skeleton calls those and
/// no others. A hook that is named here and is missing, misspelt or mistyped does not compile. Neither does one that
/// the operation has and does not name.
struct Hooks {
  /// `Ahead ahead(const Tile&, u32 warpgroup, u32 half) const` loads, before the first stage, the data that finish will
  /// need; finish receives the result as its last argument.
  bool ahead = false;
  /// `bool prepare(Shared<u8> slots, u32 math_thread) const` fills parts of the stages that no copy writes; true if
  /// this thread wrote any.
  bool prepare = false;
  /// Replaces load<pass>. `void load_constant(const LoadSlot&, const Tile&, u32 k_step) const` loads data that no
  /// earlier grid writes. So a PDL launch fills its stages with it while that grid still runs. `void load_fresh(…)
  /// const`, with the same parameters, loads the rest.
  bool load_constant = false;
  /// Replaces math<pass>: the A operand is made in registers (see MakesOperand).
  bool makes_operand = false;

  // The following hooks are for tiles of groups.

  /// `void scale(Sums&, const Ahead&) const` of a part multiplies the finished sums of this block's k range, before
  /// those of other blocks are added.
  bool scales_sums = false;

  /// Each slot's products are added to the sums in float32 (see Promotes in pipeline/promoted_products.hpp).
  bool promotes = false;
  /// The producer warp's lanes call `u32 inspect(const GroupTile&) const` for one tile of each stretch of rows.
  bool inspects = false;
  /// `bool has_rows(const GroupTile&) const` of a part says whether it has any of the tile's rows.
  bool deals_rows = false;
};

/// One thread of the producer calls prefetch first, for the tensor maps, and the loads, whose copies bring
/// slot_load_bytes to each stage. `tiles` counts them per group of neighbouring blocks, `k_steps` counts the stages of
/// one pass over k. Every consumer thread calls drain before it ends. Profiles are written to `profile`, when the shape
/// has one.
template <class Operation>
concept DualOperand =
    MatrixEngine<typename Operation::Engine> &&
    requires(const Operation& operation, typename Operation::Sums& sums, const typename Operation::Tile& tile, u32 at) {
      requires Same<decltype(Operation::shape), const Shape>;
      requires Same<decltype(Operation::hooks), const Hooks>;
      requires Operation::merge_pieces > 0;
      { operation.slot_load_bytes } -> Same<const u32&>;
      { operation.tiles() } -> Same<u32>;
      { operation.tile(at, at) } -> Same<typename Operation::Tile>;
      { operation.k_steps() } -> Same<u32>;
      { operation.prefetch() } -> Same<void>;
      { operation.drain() } -> Same<void>;
      { operation.profile() } -> Same<Global<u64>>;
      sums.clear();
      sums.settle();
    };

/// An operation whose tiles are groups'; knows_rows where there is one group, whose rows the launch knows. One producer
/// thread calls prefetch first of all, and for each slot `load`, whose copies bring slot_load_bytes(tile). `inspect`
/// gives flags. One thread `report`s them at the end with what was wrong with the bounds, in every block where the
/// operation inspects, else in the first. A consumer warpgroup makes a `Part` for each tile, of the width that holds
/// its rows; one whose part has none passes over the tile.
template <class Operation>
concept Grouped = MatrixEngine<typename Operation::Engine> &&
                  requires(const Operation& operation, const GroupTile& tile, const LoadSlot& slot, u32 at) {
                    requires Same<decltype(Operation::shape), const Shape>;
                    requires Same<decltype(Operation::tile_widths), const TileWidths>;
                    requires Same<decltype(Operation::hooks), const Hooks>;
                    requires Same<decltype(Operation::knows_rows), const bool>;
                    typename Operation::template Part<Operation::tile_widths.least>;
                    { operation.groups() } -> Same<const Groups&>;
                    { operation.k_steps() } -> Same<u32>;
                    { operation.prefetch() } -> Same<void>;
                    { operation.inspect(tile) } -> Same<u32>;
                    { operation.report(at) } -> Same<void>;
                    { operation.slot_load_bytes(tile) } -> Same<u32>;
                    { operation.load(slot, tile, at) } -> Same<void>;
                    { operation.profile() } -> Same<Global<u64>>;
                  };

/// The work of a consumer warpgroup on tiles of so many columns: `ahead` asks memory for what `finish` will need,
/// before the first slot. Products are issued by `multiply`, or of an A operand that is made in registers
/// (MakesOperand), or slot by slot for sums in float32 (Promotes). `own` are the rows of the tile that the block
/// finishes: all of them, unless its cluster has split K.
template <class Part>
concept GroupedPart = requires(const Part& part, typename Part::Sums& sums, const GroupTile& tile, const GroupTile& own,
                               Shared<u8> memory) {
  { part.ahead(tile, own) } -> Same<typename Part::Ahead>;
  { part.finish(sums, own, memory, part.ahead(tile, own)) } -> Same<void>;
};

/// `load<pass>` loads one stage; one thread of the producer calls it. `member` is the block's index among those that
/// fill each other's stages.
template <class Operation>
concept Loads =
    requires(const Operation& operation, const LoadSlot& slot, const typename Operation::Tile& tile, u32 at) {
      { operation.template load<0>(slot, tile, at, at) } -> Same<void>;
    };
template <class Operation, class Tile>
concept LoadsConstant = requires {
  static_cast<void (Operation::*)(const LoadSlot&, const Tile&, u32) const>(&Operation::load_constant);
  static_cast<void (Operation::*)(const LoadSlot&, const Tile&, u32) const>(&Operation::load_fresh);
};

/// `math<pass>` issues the products of one stage.
template <class Operation>
concept Multiplies = requires(const Operation& operation, typename Operation::Sums& sums, Shared<u8> slot, u32 at) {
  { operation.template math<0>(sums, slot, at) } -> Same<void>;
};

/// The requirements of RegisterOperand. `Packed` are the words of one block of a stage that a thread holds; `fetch`
/// reads them, `expand` makes the fragment of a k-step from them. `other` is the block's B operand and `step` its
/// k-step. `slots_together` is 1, or 2 to unroll two stages, which then come in pairs.
template <class Operation>
concept MakesOperand = requires(const Operation& operation, const typename Operation::Packed& packed, Shared<u8> slot,
                                int index, u32 warpgroup) {
  typename Operation::Element;
  requires Same<decltype(Operation::overlap), const Overlap>;
  requires Operation::blocks_per_slot > 0 && Operation::steps_per_block > 0;
  requires Operation::slots_together == 1 || Operation::slots_together == 2;
  { operation.fetch(slot, index, warpgroup) } -> Same<typename Operation::Packed>;
  { operation.expand(packed, index) } -> Same<typename Operation::Engine::Fragment>;
  Operation::step(operation.other(slot, index), index);
};

template <class Operation>
concept LooksAhead = requires {
  static_cast<typename Operation::Ahead (Operation::*)(const typename Operation::Tile&, u32, u32) const>(
      &Operation::ahead);
};
/// `finish` writes a warpgroup's share of a tile; `half` is the block's part of the k range.
template <class Operation>
concept Finishes = requires {
  static_cast<void (Operation::*)(typename Operation::Sums&, const typename Operation::Tile&, u32, u32, Shared<u8>)
                  const>(&Operation::finish);
};
template <class Operation>
concept FinishesWithAhead = requires {
  static_cast<void (Operation::*)(typename Operation::Sums&, const typename Operation::Tile&, u32, u32, Shared<u8>,
                                  const typename Operation::Ahead&) const>(&Operation::finish);
};
template <class Operation>
concept Prepares = requires { static_cast<bool (Operation::*)(Shared<u8>, u32) const>(&Operation::prepare); };

/// Rejects an operation whose hooks differ from its `hooks`, one sentence for each.
template <class Operation>
struct CheckedHooks;

template <Grouped Operation>
struct CheckedHooks<Operation> {
  static constexpr Hooks hooks = Operation::hooks;
  static_assert(!hooks.ahead && !hooks.prepare,
                "a part of a group's tile always looks ahead, and no group's operation prepares");
  static_assert(!hooks.load_constant || LoadsConstant<Operation, GroupTile>,
                "hooks.load_constant is set, but there are no 'void load_constant(const LoadSlot&, const GroupTile&, "
                "u32 k_step) const' and 'load_fresh' alike");
};

template <DualOperand Operation>
struct CheckedHooks<Operation> {
  static constexpr Hooks hooks = Operation::hooks;
  static_assert(!hooks.promotes && !hooks.inspects && !hooks.deals_rows && !hooks.scales_sums,
                "hooks.promotes, inspects, deals_rows and scales_sums are for operations whose tiles are groups'");
  static_assert(!hooks.ahead || LooksAhead<Operation>,
                "hooks.ahead is set, but there is no 'Ahead ahead(const Tile&, u32 warpgroup, u32 half) const'");
  static_assert(hooks.ahead || !requires { &Operation::ahead; }, "there is an 'ahead', but hooks.ahead is not set");
  static_assert(!hooks.prepare || Prepares<Operation>,
                "hooks.prepare is set, but there is no 'bool prepare(Shared<u8> slots, u32 math_thread) const'");
  static_assert(
      hooks.prepare || !requires { &Operation::prepare; }, "there is a 'prepare', but hooks.prepare is not set");
  static_assert(!hooks.load_constant || LoadsConstant<Operation, typename Operation::Tile>,
                "hooks.load_constant is set, but there are no 'void load_constant(const LoadSlot&, const Tile&, u32 "
                "k_step) const' and 'load_fresh' alike");
  static_assert(hooks.load_constant ||
                    !(
                        requires { &Operation::load_constant; } || requires { &Operation::load_fresh; }),
                "there is a 'load_constant' or 'load_fresh', but hooks.load_constant is not set");
  static_assert(hooks.load_constant || Loads<Operation>,
                "hooks.load_constant is not set, and there is no 'template <int pass> void load(const LoadSlot&, const "
                "Tile&, u32 k_step, u32 member) const'");
  static_assert(!hooks.makes_operand || MakesOperand<Operation>,
                "hooks.makes_operand is set, but the operation lacks something that MakesOperand asks of it");
  static_assert(hooks.makes_operand ||
                    !(
                        requires { typename Operation::Packed; } || requires { Operation::slots_together; }),
                "there is a 'Packed' or 'slots_together', but hooks.makes_operand is not set");
  static_assert(
      hooks.makes_operand || Multiplies<Operation>,
      "hooks.makes_operand is not set, and there is no 'template <int pass> void math(Sums&, Shared<u8> slot, "
      "u32 warpgroup) const'");
  static_assert(hooks.ahead || Finishes<Operation>,
                "there is no 'void finish(Sums&, const Tile&, u32 warpgroup, u32 half, Shared<u8> staging) const'");
  static_assert(!hooks.ahead || FinishesWithAhead<Operation>,
                "there is no 'void finish(Sums&, const Tile&, u32 warpgroup, u32 half, Shared<u8> staging, const "
                "Ahead&) const', as hooks.ahead asks");
};

}  // namespace thresher::pipeline
