#pragma once
/// Timestamps of the roles, for profiles. Compiled only if a kernel's Shape is `profiled`.
#include "machine/clock.hpp"
#include "machine/global.hpp"
#include "machine/launch.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

/// Moments of a role; each is written once, and a persistent block keeps those of its last tile.
enum class Moment : u8 { started, ready, first_slot, drained, merged, finished };

/// Layout of the profile: for each block and each role (consumer warpgroups, then the producer), cycles of `moments`
/// moments, then nanoseconds of the first and the last.
inline constexpr int moments = 6;
inline constexpr int profile_words = moments + 2;

TH_DEVICE constexpr int profile_words_of_block(const Shape& shape) {
  return (shape.math_warpgroups + 1) * profile_words;
}

template <Shape shape>
class Timeline {
 public:
  TH_DEVICE explicit Timeline(Global<u64> profile) : profile_(profile) {}

  /// One thread of the role calls it.
  TH_DEVICE void mark(u32 role, Moment moment) const {
    if constexpr (shape.profiled) {
      const i64 base = static_cast<i64>(launch::block_index().x) * profile_words_of_block(shape) + role * profile_words;
      profile_.store(base + static_cast<int>(moment), clock::cycles());
      if (moment == Moment::started) {
        profile_.store(base + moments, clock::nanoseconds());
      } else if (moment == Moment::finished) {
        profile_.store(base + moments + 1, clock::nanoseconds());
      }
    }
  }

 private:
  Global<u64> profile_;
};

}  // namespace thresher::pipeline
