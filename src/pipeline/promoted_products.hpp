#pragma once
/// The math loop of an operation whose matrix unit keeps sums too short: the products of each slot start from zero, and
/// once retired they are added to the sums in float32, times what their scales say.
///
/// `Sums` are tiles, and so is what a slot adds to them. While one tile's products are added, the next one's are in
/// flight; while the last one's are, other warpgroups multiply: with products in flight from one slot to the next the
/// compiler serialises them all (C7514), since it is sums that lie between them that are read.
#include "machine/matrix_engine.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

/// What PromotedProducts asks of an operation: `multiply_tile` issues a slot's products of one tile, from zero, and
/// `promote` adds them to the tile's sums, times the factors of the slot. `factors` asks memory for them: where they
/// are few while the slot before is multiplied, else, for want of registers, when it has been.
template <class Part>
concept Promotes = requires(const Part& part, typename Part::Sums& sums, const typename Part::Ahead& ahead,
                            const typename Part::Factors& factors, Shared<u8> slot, u32 step, int tile) {
  requires Part::Sums::count >
  0;
  { part.factors(ahead, step) } -> Same<typename Part::Factors>;
  { part.multiply_tile(sums, slot, tile) } -> Same<void>;
  { part.promote(sums, sums, ahead, factors, tile) } -> Same<void>;
};

template <MatrixEngine Engine, Shape shape, Promotes Part>
class PromotedProducts {
 public:
  using Sums = typename Part::Sums;
  using Ahead = typename Part::Ahead;
  using Factors = typename Part::Factors;

  TH_DEVICE PromotedProducts(const Part& part, RingReader<shape>& reader) : part_(part), reader_(reader) {}

  /// Adds the products of the next `slots` slots, not 0, and releases them. `acquired` is called when the last is
  /// there.
  template <class Acquired>
  TH_DEVICE void accumulate(Sums& sums, u32 slots, const Ahead& ahead, const Acquired& acquired) const {
    Sums fresh;
    Factors factors = part_.factors(ahead, 0);
    TH_NO_UNROLL
    for (u32 at = 0; at < slots; ++at) {
      const bool is_last = at + 1 == slots;
      const u32 next_slot = is_last ? at : at + 1;
      const Shared<u8> slot = reader_.acquire();
      if (is_last) {
        acquired();
      }
      issue(fresh, slot);
      if constexpr (factors_are_few) {
        const Factors next = part_.factors(ahead, next_slot);
        add(sums, fresh, ahead, factors);
        factors = next;
      } else {
        add(sums, fresh, ahead, factors);
        factors = part_.factors(ahead, next_slot);
      }
    }
  }

 private:
  static constexpr bool factors_are_few = sizeof(Factors) <= 8 * sizeof(float);

  TH_DEVICE void issue(Sums& fresh, Shared<u8> slot) const {
    fresh.settle();
    Engine::fence();
    TH_UNROLL
    for (int tile = 0; tile < Sums::count; ++tile) {
      part_.multiply_tile(fresh, slot, tile);
      Engine::commit();
    }
  }

  template <int tile = 0>
  TH_DEVICE void add(Sums& sums, Sums& fresh, const Ahead& ahead, const Factors& factors) const {
    constexpr int pending = Sums::count - 1 - tile;
    Engine::template retire<pending>();
    if (pending == 0) {
      reader_.release();
    }
    Engine::settle(fresh.tile[tile]);
    part_.promote(sums, fresh, ahead, factors, tile);
    Engine::settle(sums.tile[tile]);
    if constexpr (pending > 0) {
      add<tile + 1>(sums, fresh, ahead, factors);
    }
  }

  const Part& part_;
  RingReader<shape>& reader_;
};

}  // namespace thresher::pipeline
