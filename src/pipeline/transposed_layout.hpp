#pragma once
/// The staging layout of a warpgroup whose tile has outputs along its rows (pipeline/transposed_output.hpp).
#include "machine/types.hpp"

namespace thresher::pipeline {

using namespace machine;

/// Two rows of the tile make one output (gate in row r, up in row r + 8): a warp's 16 rows are 8 outputs.
inline constexpr u32 warpgroup_outputs = 32;
/// Rows of staging have 16 bytes of padding after their 16-bit outputs, so that eight of them use different banks.
TH_DEVICE constexpr u32 transposed_pitch(u32 outputs) { return outputs * 2 + 16; }
inline constexpr u32 transposed_pitch_bytes = transposed_pitch(warpgroup_outputs);

}  // namespace thresher::pipeline
