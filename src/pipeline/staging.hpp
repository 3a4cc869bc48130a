#pragma once
/// The layout of a tile of 16-bit outputs in staging memory: panels of columns, each as wide as a swizzle span that
/// divides them.
#include "machine/tensor_map.hpp"

namespace thresher::pipeline {

TH_DEVICE constexpr int staging_panel_columns(int columns) {
  return columns % 64 == 0 ? 64 : columns % 32 == 0 ? 32 : columns % 16 == 0 ? 16 : 8;
}

TH_DEVICE constexpr machine::Swizzle staging_swizzle(int panel_columns) {
  return panel_columns == 64   ? machine::Swizzle::b128
         : panel_columns == 32 ? machine::Swizzle::b64
         : panel_columns == 16 ? machine::Swizzle::b32
                               : machine::Swizzle::none;
}

}  // namespace thresher::pipeline
