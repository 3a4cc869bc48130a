#pragma once
/// The main loop of consumers for an operation whose A operand is made in registers, block by block, from packed words
/// in the stage. While the tensor cores work on one block, the warps make the fragments of the next.
///
/// A stage is released when the products that read it have retired; its packed words were read before those were
/// issued. After the last block one more is read, from the stage still held, and made into unused fragments. A branch
/// around that would prevent the compiler from sharing work between k-steps.
#include "machine/warp.hpp"
#include "pipeline/ablation.hpp"
#include "pipeline/operation.hpp"

namespace thresher::pipeline {

template <MakesOperand Operation>
class RegisterOperand {
 public:
  static constexpr Shape shape = Operation::shape;
  static constexpr int blocks = Operation::blocks_per_slot;
  static constexpr int steps = Operation::steps_per_block;
  static constexpr Overlap overlap = Operation::overlap;
  static constexpr int buffers = overlap == Overlap::none ? 1 : 2;
  static constexpr int slots_at_once = Operation::slots_together;
  using Engine = typename Operation::Engine;
  using Fragment = typename Engine::Fragment;
  using Element = typename Operation::Element;
  using Packed = typename Operation::Packed;
  static_assert(overlap == Overlap::none || slots_at_once * blocks % 2 == 0, "two buffers alternate over the blocks");

  TH_DEVICE RegisterOperand(const Operation& operation, RingReader<shape>& reader, u32 warpgroup)
      : operation_(operation), reader_(reader), warpgroup_(warpgroup) {}

  /// Adds the products of the next `slots` stages, a multiple of slots_together, not 0. All of them have retired and
  /// are released afterwards. `started` is called when the first is full.
  template <class Sums, class Started>
  TH_DEVICE void accumulate(Sums& sums, u32 slots, const Started& started) {
    auto& tile = sums.tile[0];
    if constexpr (shape.persistent) {
      reader_.make_uniform();  // elsewhere the compiler knows, since the position starts as a constant
    }
    slot_ = reader_.acquire();
    started();
    packed_ = operation_.fetch(slot_, 0, warpgroup_);
    if constexpr (overlap != Overlap::none) {
      expand(fragment_[0]);
      if constexpr (!Ablated<shape>::makes_operands) {
        expand(fragment_[1]);
      }
    }
    TH_NO_UNROLL
    for (u32 i = 0; i < slots; i += slots_at_once) {
      TH_UNROLL
      for (int s = 0; s < slots_at_once; ++s) {
        slot(tile, s * blocks, s + 1 == slots_at_once && i + s + 1 == slots, s == 0 && i == 0);
      }
    }
    Engine::template retire<0>();
    if constexpr (overlap != Overlap::none) {
      release();
    }
    Engine::settle(tile);
  }

 private:
  template <class Tile>
  TH_DEVICE void slot(Tile& tile, int first_buffer, bool last_slot, bool first_slot) {
    TH_UNROLL
    for (int b = 0; b < blocks; ++b) {
      block(tile, b, first_buffer + b, last_slot, first_slot);
    }
  }

  template <class Tile>
  TH_DEVICE void block(Tile& tile, int b, int buffer, bool last_slot, bool first_slot) {
    const auto other = operation_.other(slot_, b);
    auto& now = fragment_[buffer % buffers];
    auto& next = fragment_[(buffer + 1) % buffers];
    if constexpr (overlap == Overlap::none) {
      expand(now);
    }
    if (b + 1 < blocks) {
      packed_ = operation_.fetch(slot_, b + 1, warpgroup_);
    } else {
      if (!last_slot) {
        slot_ = reader_.acquire();
      }
      packed_ = operation_.fetch(slot_, 0, warpgroup_);
    }
    if constexpr (overlap == Overlap::step) {
      multiply_by_steps(tile, now, next, other);
      if (b == 0 && !first_slot) {
        release();  // at most this block is in flight
      }
    } else {
      multiply(tile, now, other);
      if constexpr (overlap == Overlap::block) {
        Engine::template retire<1>();
        if (b == 0 && !first_slot) {
          release();
        }
        if constexpr (Ablated<shape>::makes_operands) {
          expand(next);
        }
      } else {
        Engine::template retire<0>();
        if (b + 1 == blocks) {
          release();
        }
      }
    }
  }

  TH_DEVICE void expand(Fragment (&fragment)[steps]) const {
    TH_UNROLL
    for (int k = 0; k < steps; ++k) {
      fragment[k] = operation_.expand(packed_, k);
    }
  }

  /// Every lane must have read its packed words.
  TH_DEVICE void release() const {
    warp::sync();
    reader_.release();
  }

  template <class Tile, class Descriptor>
  TH_DEVICE void multiply(Tile& tile, Fragment (&fragment)[steps], Descriptor other) const {
    Engine::settle(tile);
    TH_UNROLL
    for (int k = 0; k < steps; ++k) {
      Engine::settle(fragment[k]);
    }
    Engine::fence();
    TH_UNROLL
    for (int k = 0; k < steps; ++k) {
      Engine::template multiply<Element>(tile, fragment[k], Operation::step(other, k), true);
    }
    Engine::commit();
  }

  /// At most steps − 1 groups stay in flight, so the fragment of step k in the other buffer is free when it is
  /// rewritten.
  template <class Tile, class Descriptor>
  TH_DEVICE void multiply_by_steps(Tile& tile, Fragment (&now)[steps], Fragment (&next)[steps],
                                   Descriptor other) const {
    TH_UNROLL
    for (int k = 0; k < steps; ++k) {
      Engine::settle(tile);
      Engine::settle(now[k]);
      Engine::fence();
      Engine::template multiply<Element>(tile, now[k], Operation::step(other, k), true);
      Engine::commit();
      Engine::template retire<steps - 1>();
      if constexpr (Ablated<shape>::makes_operands) {
        next[k] = operation_.expand(packed_, k);
      }
      Engine::settle(next[k]);  // here, so that not all follow the last multiply
    }
  }

  const Operation& operation_;
  RingReader<shape>& reader_;
  u32 warpgroup_;
  Shared<u8> slot_{};
  Packed packed_{};
  Fragment fragment_[buffers][steps];
};

}  // namespace thresher::pipeline
