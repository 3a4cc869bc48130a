#pragma once
/// The ring of slots between the loader and the math warpgroups.
///
/// full[s]: 1 arrival by this block's loader plus the bytes of the slot, whoever's copies bring them.
/// empty[s]: 1 arrival by each math warp that reads the slot, of every block whose loader's copies may land in it. A
/// warp arrives after the wait that retired its products of the slot. The loader's first wait on a slot is for the
/// phase before the first: it passes.
#include "machine/barrier.hpp"
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/warp.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

/// Where a role stands in the ring: a slot, and how often it has gone round.
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

  /// One thread calls it before anyone uses the ring.
  TH_DEVICE void init() const {
    constexpr u32 readers = shape.reading == Reading::together ? shape.math_warpgroups : 1;
    for (u32 s = 0; s < shape.stages; ++s) {
      full.offset(s).init(1);
      empty.offset(s).init(4 * readers * shape.multicast_blocks);
      debug::name_barrier(full.offset(s), "full", s);
      debug::name_barrier(empty.offset(s), "empty", s);
      debug::name_shared(slot(s), shape.slot_bytes, "slot", s);
    }
  }
};

/// A slot in its loader's hands: where copies go and which barrier they complete on.
struct LoadSlot {
  Shared<u8> base;
  Barrier full;
};

/// The loader's end.
template <Shape shape>
class RingWriter {
 public:
  TH_DEVICE explicit RingWriter(const Ring<shape>& ring) : ring_(ring) {}

  /// Waits until every reader has released the next slot.
  TH_DEVICE LoadSlot acquire() {
    ring_.empty.offset(cursor_.slot).wait(Phase{cursor_.phase.parity ^ 1U});
    return {ring_.slot(cursor_.slot), ring_.full.offset(cursor_.slot)};
  }
  TH_DEVICE void advance() { cursor_.advance(); }

 private:
  Ring<shape> ring_;
  Cursor<shape.stages> cursor_{};
};

/// A math warp's end.
template <Shape shape>
class RingReader {
 public:
  /// `first_block` is the cluster rank of the first of the blocks that fill each other's slots.
  TH_DEVICE RingReader(const Ring<shape>& ring, u32 first_block) : ring_(ring), first_block_(first_block) {}

  /// Waits until the next slot is full.
  TH_DEVICE Shared<u8> acquire() {
    ring_.full.offset(cursor_.slot).wait(cursor_.phase);
    const Shared<u8> slot = ring_.slot(cursor_.slot);
    cursor_.advance();
    return slot;
  }

  /// Releases the oldest slot that is still held, to every loader that writes into it or reads for it.
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

  /// Passes over slots that another warpgroup reads.
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
