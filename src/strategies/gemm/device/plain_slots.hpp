#pragma once
/// How the slots of a grouped GEMM of plain operands are filled with wgmma's operands, and these in them.
#include "machine/matrix_engine.hpp"
#include "machine/tma.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/gemm/device/groups.hpp"
#include "strategies/gemm/device/plain_params.hpp"
#include "strategies/gemm/device/slot_layout.hpp"

namespace thresher::strategies::gemm {

template <SlotLayout layout, pipeline::TileWidths tile_widths>
class PlainSlots {
 public:
  using Engine = EngineOf<machine::Arch::sm_90a>;
  using Operand = typename Engine::template Descriptor<layout.swizzle()>;

  static TH_DEVICE void prefetch(const PlainParams& params) {
    tma::prefetch(params.gate);
    if constexpr (layout.matrices == 2) {
      tma::prefetch(params.up);
    }
    tma::prefetch(params.few_tokens);
    tma::prefetch(params.many_tokens);
  }

  static TH_DEVICE u32 load_bytes(const pipeline::GroupTile& tile) {
    return layout.weight_bytes() +
           layout.panels() * pipeline::loaded_rows(tile.tile_width, tile_widths) * layout.row_bytes();
  }

  /// `outputs` are a tile's.
  static TH_DEVICE void load(const PlainParams& params, const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile,
                             u32 outputs, u32 k_step) {
    constexpr u32 half_bytes = layout.weight_rows * layout.row_bytes();
    const i32 group = static_cast<i32>(tile.group);
    const i32 output = static_cast<i32>(tile.column * outputs);
    TH_UNROLL
    for (int panel = 0; panel < layout.panels(); ++panel) {
      const i32 k = static_cast<i32>(k_step * layout.k + panel * layout.panel_k());
      const Shared<u8> weights = slot.base.offset_bytes(weights_at(panel));
      tma::load(weights, params.gate, slot.full, At{k, output, group});
      if constexpr (layout.matrices == 2) {
        tma::load(weights.offset_bytes(half_bytes), params.up, slot.full, At{k, output, group});
      } else {
        tma::load(weights.offset_bytes(half_bytes), params.gate, slot.full, At{k, output + layout.weight_rows, group});
      }
      pipeline::load_tokens<tile_widths, layout.row_bytes()>(slot, tokens_at(panel),
                                                             {params.few_tokens, params.many_tokens}, tile,
                                                             params.groups.groups.slots != 0 ? tile.group : 0, k);
    }
  }

  /// Returns the tokens of a panel, from a row on.
  static TH_DEVICE Operand tokens(Shared<u8> slot, int panel, u32 row) {
    return operand(slot.offset_bytes(tokens_at(panel) + row * layout.row_bytes()));
  }
  static TH_DEVICE Operand weights(Shared<u8> slot, int panel, u32 row) {
    return operand(slot.offset_bytes(weights_at(panel) + row * layout.row_bytes()));
  }

 private:
  static TH_DEVICE constexpr u32 tokens_at(int panel) { return panel * layout.token_panel_bytes(); }
  static TH_DEVICE constexpr u32 weights_at(int panel) {
    return layout.token_bytes() + panel * layout.weight_panel_bytes();
  }
  static TH_DEVICE Operand operand(Shared<u8> start) {
    return Engine::template descriptor<layout.swizzle()>(start, 0, 8 * layout.row_bytes());
  }
};

}  // namespace thresher::strategies::gemm
