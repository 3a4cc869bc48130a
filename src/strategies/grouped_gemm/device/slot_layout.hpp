#pragma once
/// What a slot of a grouped GEMM in 16 bits holds.
#include "machine/tensor_map.hpp"
#include "machine/types.hpp"

namespace thresher::strategies::grouped_gemm {

/// Panel by panel: tokens, behind those of all panels weights, and of these gate rows before up rows; of one matrix the
/// rows of one half of a tile's outputs before those of the other.
struct SlotLayout {
  int k = 64;           ///< elements along K: 32, or a multiple of 64
  int token_rows = 0;   ///< of the largest tile
  int weight_rows = 0;  ///< of either half
  int matrices = 2;

  /// Elements of a row of a panel: 64 or 128 bytes.
  TH_DEVICE constexpr int panel_k() const { return k < 64 ? 32 : 64; }
  TH_DEVICE constexpr machine::Swizzle swizzle() const {
    return k < 64 ? machine::Swizzle::b64 : machine::Swizzle::b128;
  }
  TH_DEVICE constexpr int row_bytes() const { return 2 * panel_k(); }
  TH_DEVICE constexpr int panels() const { return k / panel_k(); }
  TH_DEVICE constexpr int token_panel_bytes() const { return token_rows * row_bytes(); }
  TH_DEVICE constexpr int token_bytes() const { return panels() * token_panel_bytes(); }
  TH_DEVICE constexpr int weight_panel_bytes() const { return 2 * weight_rows * row_bytes(); }
  TH_DEVICE constexpr int weight_bytes() const { return panels() * weight_panel_bytes(); }
};

}  // namespace thresher::strategies::grouped_gemm
