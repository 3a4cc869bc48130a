#pragma once
/// Products of plain operands as the skeleton runs them, whichever side of the instruction tokens are.
#include "pipeline/wgmma_skeleton.hpp"
#include "strategies/gemm/device/finish_inputs.hpp"
#include "strategies/gemm/device/plain_slots.hpp"
#include "strategies/gemm/wgmma/config.hpp"

namespace thresher::strategies::gemm::wgmma {

using namespace machine;

/// All but the part of a consumer warpgroup.
template <Config config>
class Operation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr pipeline::Hooks hooks{.promotes = promotes(config),
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

 protected:
  const PlainParams& params_;
};

}  // namespace thresher::strategies::gemm::wgmma
