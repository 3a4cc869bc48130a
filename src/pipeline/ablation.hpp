#pragma once
/// The work that ablated kernels leave out or do twice. Every question is answered at compile time, so that an ordinary
/// kernel contains none of this.
#include "machine/warp.hpp"
#include "pipeline/ordered_barrier.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

template <Shape shape>
struct Ablated {
  /// Whether the `index`-th stage of a tile is loaded. products_only loads those of the first round.
  static TH_DEVICE bool loads(u32 index) {
    return shape.ablation != Ablation::products_only || index < static_cast<u32>(shape.stages);
  }
  static constexpr bool multiplies = shape.ablation != Ablation::loads_only;
  /// Whether an A operand in registers is made for each stage.
  static constexpr bool makes_operands = shape.ablation != Ablation::first_operand;

  /// Replaces a load.
  static TH_DEVICE void pretend_full(const LoadSlot& slot) {
    if (warp::elect()) {
      slot.full.arrive();
    }
    warp::sync();
  }

  /// Replaces the products of `slots` stages.
  static TH_DEVICE void release_all(RingReader<shape>& reader, const OrderedBarrier<shape>& turns, u32 slots) {
    TH_NO_UNROLL
    for (u32 slot = 0; slot < slots; ++slot) {
      (void)reader.acquire();
      warp::sync();  // one lane releases for all, and a late lane would wait for an old phase
      reader.release();
    }
    if constexpr (shape.reading == Reading::ping_pong) {
      turns.pass_on();
    }
  }

  /// Calls `finish` as often as the epilogue runs. There are never 2^32 − 1 `tiles()`; but sums that nothing could ever
  /// read would be taken away together with their products.
  template <class Tiles, class Finish>
  static TH_DEVICE void finish(const Tiles& tiles, const Finish& finish) {
    if (shape.ablation != Ablation::no_epilogue || tiles() == 0xFFFFFFFFU) {
      finish();
    }
    if constexpr (shape.ablation == Ablation::epilogue_twice) {
      finish();
    }
  }
};

}  // namespace thresher::pipeline
