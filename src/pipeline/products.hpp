#pragma once
/// The math loop of an operation whose two operands both lie in a slot.
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

template <class Engine, Shape shape>
class SlotProducts {
 public:
  /// One group of products stays in flight, so that a slot is released one step late. A ring of one slot cannot wait
  /// for that.
  static constexpr int in_flight = shape.stages > 1 ? 1 : 0;

  TH_DEVICE explicit SlotProducts(RingReader<shape>& reader) : reader_(reader) {}

  /// `multiply(slot)` issues the products of the next slot, which stay in flight.
  template <class Multiply>
  TH_DEVICE void issue(const Multiply& multiply) const {
    const Shared<u8> slot = reader_.acquire();
    Engine::fence();
    multiply(slot);
    Engine::commit();
  }

  /// The slots `first` to `end` of a walk; those before them are retired and released, one by one.
  template <class Multiply>
  TH_DEVICE void issue_and_release(u32 first, u32 end, const Multiply& multiply) const {
    TH_NO_UNROLL
    for (u32 step = first; step < end; ++step) {
      issue(multiply);
      Engine::template retire<in_flight>();
      reader_.release();
    }
  }

  /// What is still in flight has retired, and the slot that is still held is released.
  TH_DEVICE void finish(bool holds_a_slot) const {
    if constexpr (in_flight > 0) {
      Engine::template retire<0>();
      if (holds_a_slot) {
        reader_.release();
      }
    }
  }

 private:
  RingReader<shape>& reader_;
};

}  // namespace thresher::pipeline
