#pragma once
/// The grouped GEMMs of plain operands as the grouped skeleton runs them.
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/wgmma_skeleton.hpp"
#include "strategies/gemm/device/column_scales.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/gemm/device/plain_slots.hpp"
#include "strategies/gemm/wgmma/config.hpp"

namespace thresher::strategies::gemm::wgmma {

using namespace machine;

template <Config config>
class ColumnsOperation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr pipeline::Hooks hooks{.promotes = promotes(config), .inspects = config.gathered};
  using Engine = EngineOf<machine::Arch::sm_90a>;
  static constexpr SlotLayout slots = slot_layout(config);
  using Slots = PlainSlots<slots, tile_widths>;

  TH_DEVICE explicit ColumnsOperation(const PlainParams& params) : params_(params) {}

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

  /// A math warpgroup's work on tiles of so many columns.
  template <u32 columns>
  class Part {
   public:
    using Sums = pipeline::AccumulatorTiles<Engine, static_cast<int>(columns), 2>;
    using Fresh = Sums;
    static constexpr int pieces = Fresh::count;
    using Finishing = Finish<finish_knobs(config), TwoTiles<config.matrices>, columns>;
    using Scales = ColumnScales<scaling_knobs(config), config.matrices, columns>;
    using Factors = typename Scales::Factors;
    struct Ahead {
      typename Finishing::Ahead finishing;
      typename Scales::Ahead scales;
    };

    TH_DEVICE Part(const ColumnsOperation& operation, u32 warpgroup)
        : params_(operation.params_), warpgroup_(warpgroup), first_row_(config.by_turns ? 0 : warpgroup * sum_rows) {}

    TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const {
      return {finishing(tile).ahead(tile), scales(tile).ahead(tile)};
    }

    TH_DEVICE void multiply(Sums& sums, Shared<u8> slot) const {
      TH_UNROLL
      for (int panel = 0; panel < slots.panels(); ++panel) {
        TH_UNROLL
        for (int at = 0; at < slots.row_bytes(); at += product_row_bytes) {
          TH_UNROLL
          for (int t = 0; t < 2; ++t) {
            multiply(sums, slot, panel, at, t, true);
          }
        }
      }
    }

    TH_DEVICE Factors factors(const Ahead& ahead, u32 step) const {
      return scales({}).factors(ahead.scales, step * config.block_k / scale_block);
    }
    TH_DEVICE void multiply_piece(Fresh& fresh, Shared<u8> slot, int t) const {
      TH_UNROLL
      for (int at = 0; at < slots.row_bytes(); at += product_row_bytes) {
        multiply(fresh, slot, 0, at, t, at != 0);
      }
    }
    TH_DEVICE void promote(Sums& sums, const Fresh& fresh, const Ahead&, const Factors& factors, int t) const {
      scales({}).promote(sums, fresh, factors, t);
    }

    TH_DEVICE void finish(Sums& sums, const pipeline::GroupTile& tile, Shared<u8> staging, const Ahead& ahead) const {
      scales(tile).scale(sums, ahead.scales);
      finishing(tile).write(sums, tile, staging, ahead.finishing, [](float sum, int, int, int) { return sum; });
    }

   private:
    using Element = typename NumberType<config.operand>::type;

    /// The products of 32 bytes along K, `at` of a panel, in one tile.
    TH_DEVICE void multiply(Sums& sums, Shared<u8> slot, int panel, int at, int t, bool accumulate) const {
      const auto weights = Slots::weights(slot, panel, first_row_);
      Engine::template multiply<Element>(sums.tile[t],
                                         weights.advance(t * weight_box_rows(config) * slots.row_bytes() + at),
                                         Slots::tokens(slot, panel, 0).advance(at), accumulate);
    }

    TH_DEVICE OutputPlace place(const pipeline::GroupTile& tile) const {
      return {tile.column * tile_outputs(config) + first_row_, weight_box_rows(config), warpgroup_};
    }
    TH_DEVICE Finishing finishing(const pipeline::GroupTile& tile) const { return {params_.finish, place(tile)}; }
    TH_DEVICE Scales scales(const pipeline::GroupTile& tile) const { return {params_, place(tile)}; }

    const PlainParams& params_;
    u32 warpgroup_;
    u32 first_row_;  ///< of its weights in either half of the tile's
  };

 private:
  const PlainParams& params_;
};

/// The entry point: instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), config.blocks_resident)
columns_kernel(TH_GRID_CONSTANT const PlainParams params) {
  pipeline::run_grouped(ColumnsOperation<config>(params));
}

}  // namespace thresher::strategies::gemm::wgmma
