#pragma once
/// The ring of pipeline stages between the producer and the consumer warpgroups.
///
/// `full[s]`: 1 arrival by this block's producer plus the bytes of the stage, whichever block's copies bring them.
/// `empty[s]`: 1 arrival by each consumer warp that reads the stage, of every block whose producer's copies may write
/// to it. A warp arrives after the wait that retired its products of the stage. The producer's first wait on a stage is
/// for the phase before the first: it returns at once.
#include "machine/barrier.hpp"
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/warp.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

/// A role's position in the ring: a stage, and the number of completed rounds.
template <int stages>
struct Cursor {
  u32 slot = 0;
  Phase phase{};

  TH_DEVICE void advance() {
    if (++slot == stages) {
      slot = 0;
      phase.flip();
    }
  }
  TH_DEVICE void skip(u32 count) {
    const u32 beyond = slot + count;
    phase.parity ^= (beyond / stages) & 1U;
    slot = beyond % stages;
  }
};

template <Shape shape>
struct Ring {
  Shared<u8> slots;
  Barrier full;
  Barrier empty;

  TH_DEVICE Shared<u8> slot(u32 index) const { return slots.offset_bytes(index * shape.slot_bytes); }

  /// One thread calls it before any use of the ring.
  TH_DEVICE void init() const {
    constexpr u32 readers = shape.reading == Reading::cooperative ? shape.math_warpgroups : 1;
    for (u32 s = 0; s < shape.stages; ++s) {
      full.offset(s).init(1);
      empty.offset(s).init(4 * readers * shape.multicast_blocks);
      debug::name_barrier(full.offset(s), "full", s);
      debug::name_barrier(empty.offset(s), "empty", s);
      debug::name_shared(slot(s), shape.slot_bytes, "slot", s);
    }
  }
};

/// A stage acquired by its producer: the destination of copies and the barrier on which they complete.
struct LoadSlot {
  Shared<u8> base;
  Barrier full;
};

/// The producer's end.
template <Shape shape>
class RingWriter {
 public:
  TH_DEVICE explicit RingWriter(const Ring<shape>& ring) : ring_(ring) {}

  /// Waits until every reader has released the next stage.
  TH_DEVICE LoadSlot acquire() {
    ring_.empty.offset(cursor_.slot).wait(Phase{cursor_.phase.parity ^ 1U});
    return {ring_.slot(cursor_.slot), ring_.full.offset(cursor_.slot)};
  }
  TH_DEVICE void advance() { cursor_.advance(); }

 private:
  Ring<shape> ring_;
  Cursor<shape.stages> cursor_{};
};

/// A consumer warp's end.
template <Shape shape>
class RingReader {
 public:
  /// `first_block` is the cluster rank of the first of the blocks that fill each other's stages.
  TH_DEVICE RingReader(const Ring<shape>& ring, u32 first_block) : ring_(ring), first_block_(first_block) {}

  /// Waits until the next stage is full.
  TH_DEVICE Shared<u8> acquire() {
    ring_.full.offset(cursor_.slot).wait(cursor_.phase);
    const Shared<u8> slot = ring_.slot(cursor_.slot);
    cursor_.advance();
    return slot;
  }

  /// Releases the oldest stage that is still held, to the producer of every block whose copies fill it.
  TH_DEVICE void release() {
    const Barrier empty = ring_.empty.offset(held_.slot);
    const u32 lane = warp::lane();
    if constexpr (shape.multicast_blocks > 1) {
      if (lane < shape.multicast_blocks) {
        cluster::map(empty, first_block_ + lane).arrive();
      }
    } else {
      if (lane == 0) {
        empty.arrive();
      }
    }
    held_.advance();
  }

  /// Lets the compiler see that the next stage is the same for all lanes: it then keeps addresses in uniform registers.
  TH_DEVICE void make_uniform() { cursor_.slot = warp::shuffle(cursor_.slot, 0); }

  /// Skips stages that another warpgroup reads.
  TH_DEVICE void skip(u32 slots) {
    cursor_.skip(slots);
    held_.skip(slots);
  }

 private:
  Ring<shape> ring_;
  u32 first_block_;
  Cursor<shape.stages> cursor_{};
  Cursor<shape.stages> held_{};
};

}  // namespace thresher::pipeline
