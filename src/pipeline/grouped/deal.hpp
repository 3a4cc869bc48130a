#pragma once
/// Which tiles of a grouped kernel are whose.
#include "machine/types.hpp"

namespace thresher::pipeline {

using namespace machine;

/// The tiles of one block: round by round one of as many neighbours as there are blocks, every second round from the
/// other end, so that no block always has the longer ones where lengths alternate or fall.
class StridedTiles {
 public:
  TH_DEVICE StridedTiles(u32 block, u32 blocks) : index_(block), step_(2 * (blocks - block) - 1), both_(2 * blocks) {}

  TH_DEVICE u32 index() const { return index_; }
  TH_DEVICE u32 next() const { return index_ + step_; }
  TH_DEVICE void advance() {
    index_ += step_;
    step_ = both_ - step_;
  }

 private:
  u32 index_;
  u32 step_;
  u32 both_;  ///< of two rounds
};

}  // namespace thresher::pipeline
