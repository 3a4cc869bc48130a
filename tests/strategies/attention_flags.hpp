#pragma once
/// What a call over pages in the emulator found in its lengths and pages.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "strategies/attention/tensors.hpp"
#include "strategies/emulated_case.hpp"

namespace thresher::strategies::attention {

/// Of a call's workspace: all flags of each status.
inline u32 flags_of(const EmulatedCall& call) {
  u32 flags = 0;
  bool has_status = false;
  for (const WorkspacePiece& piece : call.planned().workspace) {
    if (is_status(piece)) {
      has_status = true;
      std::vector<u32> words(piece.bytes / sizeof(u32));
      std::memcpy(words.data(), static_cast<const std::byte*>(call.workspace()) + piece.offset, piece.bytes);
      flags |= flags_in(words);
    }
  }
  EXPECT_TRUE(has_status);
  return flags;
}

}  // namespace thresher::strategies::attention
