#pragma once
/// Products of plain operands as the skeleton runs them, whichever side of the instruction tokens are.
#include "machine/matrix_engine.hpp"
#include "machine/tma.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "pipeline/wgmma_skeleton.hpp"
#include "strategies/gemm/device/finish_inputs.hpp"
#include "strategies/gemm/wgmma/config.hpp"

namespace thresher::strategies::gemm::wgmma {

using namespace machine;

/// How stages are filled, and their operands in them.
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
    TH_UNROLL
    for (int panel = 0; panel < layout.panels(); ++panel) {
      load_weights(params, slot, tile, outputs, k_step, panel);
      load_tokens(params, slot, tile, k_step, panel);
    }
  }
  static TH_DEVICE void load_weights(const PlainParams& params, const pipeline::LoadSlot& slot,
                                     const pipeline::GroupTile& tile, u32 outputs, u32 k_step, int panel) {
    constexpr u32 half_bytes = layout.weight_rows * layout.row_bytes();
    const i32 group = static_cast<i32>(tile.group);
    const i32 output = static_cast<i32>(tile.column * outputs);
    const i32 k = k_of(k_step, panel);
    const Shared<u8> weights = slot.base.offset_bytes(weights_at(panel));
    tma::load(weights, params.gate, slot.full, At{k, output, group});
    if constexpr (layout.matrices == 2) {
      tma::load(weights.offset_bytes(half_bytes), params.up, slot.full, At{k, output, group});
    } else {
      tma::load(weights.offset_bytes(half_bytes), params.gate, slot.full, At{k, output + layout.weight_rows, group});
    }
  }
  static TH_DEVICE void load_tokens(const PlainParams& params, const pipeline::LoadSlot& slot,
                                    const pipeline::GroupTile& tile, u32 k_step, int panel) {
    pipeline::load_tokens<tile_widths, layout.row_bytes()>(
        slot, tokens_at(panel), {params.few_tokens, params.many_tokens}, tile,
        params.groups.groups.slots != 0 ? tile.group : 0, k_of(k_step, panel));
  }

  /// Returns the tokens of a panel, from a row on.
  static TH_DEVICE Operand tokens(Shared<u8> slot, int panel, u32 row) {
    return operand(slot.offset_bytes(tokens_at(panel) + row * layout.row_bytes()));
  }
  static TH_DEVICE Operand weights(Shared<u8> slot, int panel, u32 row) {
    return operand(slot.offset_bytes(weights_at(panel) + row * layout.row_bytes()));
  }

 private:
  static TH_DEVICE i32 k_of(u32 k_step, int panel) {
    return static_cast<i32>(k_step * layout.k + panel * layout.panel_k());
  }
  static TH_DEVICE constexpr u32 tokens_at(int panel) { return panel * layout.token_panel_bytes(); }
  static TH_DEVICE constexpr u32 weights_at(int panel) {
    return layout.token_bytes() + panel * layout.weight_panel_bytes();
  }
  static TH_DEVICE Operand operand(Shared<u8> start) {
    return Engine::template descriptor<layout.swizzle()>(start, 0, 8 * layout.row_bytes());
  }
};

/// All but the part of a consumer warpgroup.
template <Config config>
class Operation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr bool knows_rows = config.static_tiles;
  static constexpr pipeline::Hooks hooks{.load_constant = true,
                                         .scales_sums = !config.tokens_are_rows,
                                         .promotes = promotes(config),
                                         .inspects = config.gathered,
                                         .deals_rows = config.tokens_are_rows && !config.by_turns};
  using Engine = EngineOf<machine::Arch::sm_90a>;
  static constexpr SlotLayout slots = slot_layout(config);
  using Slots = PlainSlots<slots, tile_widths>;

  TH_DEVICE explicit Operation(const PlainParams& params) : params_(params) {}

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return (params_.k + config.block_k - 1) / config.block_k; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }
  TH_DEVICE void prefetch() const { Slots::prefetch(params_); }

  TH_DEVICE u32 inspect(const pipeline::GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<hooks.inspects>(params_.groups, flags); }

  TH_DEVICE u32 slot_load_bytes(const pipeline::GroupTile& tile) const { return Slots::load_bytes(tile); }
  TH_DEVICE void load(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    Slots::load(params_, slot, tile, tile_outputs(config), k_step);
  }
  /// Weights, which no earlier launch writes.
  TH_DEVICE void load_constant(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    TH_UNROLL
    for (int panel = 0; panel < slots.panels(); ++panel) {
      Slots::load_weights(params_, slot, tile, tile_outputs(config), k_step, panel);
    }
  }
  TH_DEVICE void load_fresh(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    TH_UNROLL
    for (int panel = 0; panel < slots.panels(); ++panel) {
      Slots::load_tokens(params_, slot, tile, k_step, panel);
    }
  }

 protected:
  const PlainParams& params_;
};

}  // namespace thresher::strategies::gemm::wgmma
