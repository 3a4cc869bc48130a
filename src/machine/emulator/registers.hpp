#pragma once
/// The register pool in the emulator: an increase waits until the pool has enough.
#include "machine/emulator/engine/calls.hpp"
#include "machine/registers.hpp"

namespace thresher::machine::registers {

template <int count>
void increase(Site site) {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0, "a multiple of 8 in 24…256");
  emulator::calls::registers_change(count, true, site);
}

template <int count>
void decrease(Site site) {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0, "a multiple of 8 in 24…256");
  emulator::calls::registers_change(count, false, site);
}

}  // namespace thresher::machine::registers
