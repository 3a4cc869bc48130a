#pragma once
/// The order of ping-pong warpgroups at the ring, where each stage has one reading warpgroup.
///
/// `turn[w]`: 1 arrival by each warp of the warpgroup before w, when that warpgroup has acquired the last stage of its
/// tile. A phase distinguishes only odd from even: a warpgroup that used the ring a whole tile early would take an old
/// round for its own.
#include "machine/barrier.hpp"
#include "machine/debug.hpp"
#include "machine/warp.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

template <Shape shape>
class OrderedBarrier {
 public:
  /// The first warpgroup's first wait is for the phase before the first: it returns at once.
  TH_DEVICE OrderedBarrier(Barrier turns, u32 warpgroup)
      : own_(turns.offset(warpgroup)),
        next_(turns.offset(warpgroup + 1 == shape.math_warpgroups ? 0 : warpgroup + 1)),
        phase_{warpgroup == 0 ? 1U : 0U} {}

  /// One thread calls it before any wait.
  static TH_DEVICE void init(Barrier turns) {
    for (u32 w = 0; w < shape.math_warpgroups; ++w) {
      turns.offset(w).init(4);
      debug::name_barrier(turns.offset(w), "turn", w);
    }
  }

  TH_DEVICE void wait() {
    own_.wait(phase_);
    phase_.flip();
  }
  /// Every lane must have passed its wait: a late lane might pass it two turns later.
  TH_DEVICE void pass_on() const {
    warp::sync();
    if (warp::lane() == 0) {
      next_.arrive();
    }
  }

 private:
  Barrier own_;
  Barrier next_;
  Phase phase_;
};

}  // namespace thresher::pipeline
