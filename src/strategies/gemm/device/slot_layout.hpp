#pragma once
/// The content of a stage buffer of a grouped GEMM of plain operands, in 16 bits or in FP8.
#include "machine/tensor_map.hpp"
#include "machine/types.hpp"

namespace thresher::strategies::gemm {

inline constexpr int product_row_bytes = 32;  ///< along K, of one instruction

/// The tokens of all panels come first, panel by panel, and then the weights of all panels. In a panel, gate rows come
/// before up rows. With one matrix, the rows of one half of a tile's outputs come before those of the other.
struct SlotLayout {
  int k = 64;           ///< elements along K: 64 bytes of them, or a multiple of 128
  int token_rows = 0;   ///< of the largest tile
  int weight_rows = 0;  ///< of either half
  int matrices = 2;
  int element_bytes = 2;

  /// A row of a panel.
  TH_DEVICE constexpr int row_bytes() const { return k * element_bytes < 128 ? 64 : 128; }
  TH_DEVICE constexpr int panel_k() const { return row_bytes() / element_bytes; }
  TH_DEVICE constexpr machine::Swizzle swizzle() const {
    return row_bytes() == 64 ? machine::Swizzle::b64 : machine::Swizzle::b128;
  }
  TH_DEVICE constexpr int panels() const { return k / panel_k(); }
  TH_DEVICE constexpr int token_panel_bytes() const { return token_rows * row_bytes(); }
  TH_DEVICE constexpr int token_bytes() const { return panels() * token_panel_bytes(); }
  TH_DEVICE constexpr int weight_panel_bytes() const { return 2 * weight_rows * row_bytes(); }
  TH_DEVICE constexpr int weight_bytes() const { return panels() * weight_panel_bytes(); }
};

}  // namespace thresher::strategies::gemm
