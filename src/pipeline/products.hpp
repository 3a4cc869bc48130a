#pragma once
/// The main loop of consumers for an operation whose two operands are both in a stage.
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

template <class Engine, Shape shape>
class SlotProducts {
 public:
  /// One group of products stays in flight, so that a stage is released one step late. A ring of one stage cannot wait
  /// for that.
  static constexpr int in_flight = shape.stages > 1 ? 1 : 0;

  TH_DEVICE explicit SlotProducts(RingReader<shape>& reader) : reader_(reader) {}

  /// `multiply(slot)` issues the products of the next stage, which stay in flight.
  template <class Multiply>
  TH_DEVICE void issue(const Multiply& multiply) const {
    const Shared<u8> slot = reader_.acquire();
    Engine::fence();
    multiply(slot);
    Engine::commit();
  }

  /// Stages `first` to `end` of a loop over k; those before them are retired and released, one by one.
  template <class Multiply>
  TH_DEVICE void issue_and_release(u32 first, u32 end, const Multiply& multiply) const {
    TH_NO_UNROLL
    for (u32 step = first; step < end; ++step) {
      issue(multiply);
      Engine::template retire<in_flight>();
      reader_.release();
    }
  }

  /// Waits until all products in flight have retired, and releases the stage that is still held.
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
