#pragma once
/// Names and expectations for the emulator's findings. All of it is empty on the GPU.
#include "machine/barrier.hpp"

namespace thresher::machine::debug {

/// This thread has the role `name` from here on ("load", "math 1"); a string literal.
TH_DEVICE void role(const char* name, u32 index = 0);
/// Findings call this barrier `name`[index].
TH_DEVICE void name_barrier(Barrier barrier, const char* name, u32 index = 0);
/// Findings call the `bytes` from `start` `name`[index].
TH_DEVICE void name_shared(Shared<u8> start, u32 bytes, const char* name, u32 index = 0);
/// Reports a finding when false.
TH_DEVICE void expect(bool condition, const char* sentence, Site site = here());

}  // namespace thresher::machine::debug

#if TH_GPU
#include "machine/ptx/debug.hpp"
#else
#include "machine/emulator/debug.hpp"
#endif
