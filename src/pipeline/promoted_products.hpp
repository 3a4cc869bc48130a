#pragma once
/// The main loop of consumers with FP32 accumulation across stages, for tensor cores that accumulate in too few bits.
/// The products of each stage start from zero. Once retired they are added to the accumulators in float32, times their
/// scales.
///
/// A stage's results come in pieces, of which `Fresh` holds as many as it has tiles: all, or fewer where registers are
/// few. While one piece is added, the next one's products are in flight if there is a tile for them. While the last one
/// is added, other warpgroups multiply. Products in flight from one stage to the next would be serialised by the
/// compiler (C7514), since accumulators between them are read.
#include "machine/matrix_engine.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

/// PromotedProducts's requirements of an operation. `multiply_piece` issues a stage's products of one of its `pieces`,
/// from zero, into the tile of `Fresh` whose number is the piece's modulo the tiles. `promote` adds them to the
/// accumulators, times the factors of the stage. `factors` loads these. It runs while the previous stage is multiplied
/// if they are few, otherwise, for want of registers, afterwards. `spread` gives each thread those that it multiplies
/// by, once for all pieces.
template <class Part>
concept Promotes = requires(const Part& part, typename Part::Sums& sums, typename Part::Fresh& fresh,
                            const typename Part::Ahead& ahead, const typename Part::Factors& factors, Shared<u8> slot,
                            u32 step, int piece) {
  requires(Part::pieces % Part::Sums::count == 0);
  requires(Part::Fresh::count > 0 && Part::Fresh::count <= Part::pieces);
  { part.factors(ahead, step) } -> Same<typename Part::Factors>;
  { part.multiply_piece(fresh, slot, piece) } -> Same<void>;
  part.promote(sums, fresh, ahead, part.spread(factors), piece);
};

template <MatrixEngine Engine, Shape shape, Promotes Part>
class PromotedProducts {
 public:
  using Sums = typename Part::Sums;
  using Fresh = typename Part::Fresh;
  using Ahead = typename Part::Ahead;
  using Factors = typename Part::Factors;

  TH_DEVICE PromotedProducts(const Part& part, RingReader<shape>& reader) : part_(part), reader_(reader) {}

  /// Adds the products of the next `slots` stages, not 0, and releases them. The first is step `first` along K.
  /// `acquired` is called when the last is full.
  template <class Acquired>
  TH_DEVICE void accumulate(Sums& sums, u32 first, u32 slots, const Ahead& ahead, const Acquired& acquired) const {
    Fresh fresh;
    Factors factors = part_.factors(ahead, first);
    TH_NO_UNROLL
    for (u32 at = 0; at < slots; ++at) {
      const bool is_last = at + 1 == slots;
      const u32 next_step = first + (is_last ? at : at + 1);
      const Shared<u8> slot = reader_.acquire();
      if (is_last) {
        acquired();
      }
      issue(fresh, slot);
      if constexpr (factors_are_few) {
        const Factors next = part_.factors(ahead, next_step);
        add(sums, fresh, slot, ahead, part_.spread(factors));
        factors = next;
      } else {
        add(sums, fresh, slot, ahead, part_.spread(factors));
        factors = part_.factors(ahead, next_step);
      }
    }
  }

 private:
  static constexpr bool factors_are_few = sizeof(Factors) <= 8 * sizeof(float);

  /// The first pieces, as many as there are tiles for.
  TH_DEVICE void issue(Fresh& fresh, Shared<u8> slot) const {
    fresh.settle();
    Engine::fence();
    TH_UNROLL
    for (int piece = 0; piece < Fresh::count; ++piece) {
      part_.multiply_piece(fresh, slot, piece);
      Engine::commit();
    }
  }

  /// This piece, and those after it. Its tile is then free for the products of another piece.
  template <int piece = 0, class Spread>
  TH_DEVICE void add(Sums& sums, Fresh& fresh, Shared<u8> slot, const Ahead& ahead, const Spread& factors) const {
    constexpr int behind = Part::pieces - 1 - piece;
    constexpr int pending = behind < Fresh::count ? behind : Fresh::count - 1;
    Engine::template retire<pending>();
    if (behind == 0) {
      reader_.release();
    }
    Engine::settle(fresh.tile[piece % Fresh::count]);
    part_.promote(sums, fresh, ahead, factors, piece);
    Engine::settle(sums.tile[piece / (Part::pieces / Sums::count)]);
    if constexpr (behind >= Fresh::count) {
      Engine::fence();
      part_.multiply_piece(fresh, slot, piece + Fresh::count);
      Engine::commit();
    }
    if constexpr (behind > 0) {
      add<piece + 1>(sums, fresh, slot, ahead, factors);
    }
  }

  const Part& part_;
  RingReader<shape>& reader_;
};

}  // namespace thresher::pipeline
