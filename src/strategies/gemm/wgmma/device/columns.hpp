#pragma once
/// The part of a consumer warpgroup where weights are rows of the matrix instruction.
#include "pipeline/accumulator_tiles.hpp"
#include "strategies/gemm/device/column_scales.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/gemm/wgmma/device/operation.hpp"

namespace thresher::strategies::gemm::wgmma {

template <Config config>
class ColumnsOperation : public Operation<config> {
 public:
  using Engine = typename Operation<config>::Engine;
  using Slots = typename Operation<config>::Slots;
  static constexpr SlotLayout slots = Operation<config>::slots;

  using Operation<config>::Operation;

  /// A consumer warpgroup's work on tiles of so many columns.
  template <u32 columns>
  class Part {
   public:
    using Sums = pipeline::AccumulatorTiles<Engine, static_cast<int>(columns), 2>;
    using Fresh = Sums;
    static constexpr int pieces = Fresh::count;
    using Finishing = Finish<finish_knobs(config), TwoTiles<config.matrices>,
                             pipeline::kept_columns(Operation<config>::shape, columns)>;
    using Scales = ColumnScales<scaling_knobs(config), config.matrices, columns>;
    using Factors = typename Scales::Factors;
    struct Ahead {
      typename Finishing::Ahead finishing;
      typename Scales::Ahead scales;
    };

    TH_DEVICE Part(const ColumnsOperation& operation, u32 warpgroup)
        : params_(operation.params_), warpgroup_(warpgroup), first_row_(config.by_turns ? 0 : warpgroup * sum_rows) {}

    TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile, const pipeline::GroupTile& own) const {
      return {finishing(own).ahead(own), scales(tile).ahead(tile)};
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
    TH_DEVICE auto spread(const Factors& factors) const { return scales({}).spread(factors); }
    TH_DEVICE void promote(Sums& sums, const Fresh& fresh, const Ahead&, const typename Scales::Spread& factors,
                           int t) const {
      scales({}).promote(sums, fresh, factors, t);
    }

    TH_DEVICE void scale(Sums& sums, const Ahead& ahead) const { scales({}).scale(sums, ahead.scales); }
    TH_DEVICE void finish(Sums& sums, const pipeline::GroupTile& own, Shared<u8> staging, const Ahead& ahead) const {
      finishing(own).write(sums, own, staging, ahead.finishing, [](float sum, int, int, int) { return sum; });
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
};

/// The entry point: instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), config.blocks_resident)
columns_kernel(TH_GRID_CONSTANT const PlainParams params) {
  pipeline::run_grouped(ColumnsOperation<config>(params));
}

}  // namespace thresher::strategies::gemm::wgmma
