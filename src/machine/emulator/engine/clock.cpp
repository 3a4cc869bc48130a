#include "machine/emulator/engine/clock.hpp"

#include <algorithm>

#include "machine/emulator/engine/simd.hpp"

namespace thresher::emulator {

void VectorClock::join(const VectorClock& other) {
  const std::size_t common = std::min(ticks_.size(), other.ticks_.size());
  simd::raise_each(ticks_.data(), other.ticks_.data(), common);
  if (other.ticks_.size() > common) {
    ticks_.insert(ticks_.end(), other.ticks_.begin() + static_cast<std::ptrdiff_t>(common), other.ticks_.end());
  }
}

void VectorClock::meet(const VectorClock& other) {
  ticks_.resize(std::min(ticks_.size(), other.ticks_.size()));
  simd::lower_each(ticks_.data(), other.ticks_.data(), ticks_.size());
}

}  // namespace thresher::emulator
