#pragma once
/// Empty: names and expectations are only for the emulator.
#include "machine/debug.hpp"

namespace thresher::machine::debug {

TH_DEVICE void role(const char*, u32) {}
TH_DEVICE void name_barrier(Barrier, const char*, u32) {}
TH_DEVICE void name_shared(Shared<u8>, u32, const char*, u32) {}
TH_DEVICE void expect(bool, const char*, Site) {}

}  // namespace thresher::machine::debug
