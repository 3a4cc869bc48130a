#pragma once
/// The grouped GEMMs in BF16 and FP16 with tokens as rows, as the grouped skeleton runs them.
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/grouped/skeleton.hpp"
#include "strategies/grouped_gemm/device/finish_rows.hpp"
#include "strategies/grouped_gemm/device/sixteen_bit_slots.hpp"
#include "strategies/grouped_gemm/rows/config.hpp"

namespace thresher::strategies::grouped_gemm::rows {

using namespace machine;

template <Config config>
class Operation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::Rungs rungs = rungs_of(config);
  static constexpr bool makes_operand = false;
  static constexpr bool inspects = config.gathered;
  using Engine = EngineOf<Arch::sm_90a>;
  static constexpr SlotLayout slots = slot_layout(config);
  using Slots = SixteenBitSlots<slots, rungs>;

  TH_DEVICE explicit Operation(const PlainParams& params) : params_(params) {}

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return (params_.k + config.block_k - 1) / config.block_k; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }
  TH_DEVICE void prefetch() const { Slots::prefetch(params_); }

  TH_DEVICE u32 inspect(const pipeline::GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<inspects>(params_.groups, flags); }

  TH_DEVICE u32 slot_load_bytes(const pipeline::GroupTile& tile) const { return Slots::load_bytes(tile); }
  TH_DEVICE void load(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    Slots::load(params_, slot, tile, tile_outputs(config), k_step);
  }

  /// A math warpgroup's work on tiles of so many rows.
  template <u32 rows>
  class Part {
   public:
    static constexpr int count = rows / sum_rows;
    static constexpr int columns = 2 * config.block_outputs;
    using Sums = pipeline::AccumulatorTiles<Engine, columns, count>;
    using Finishing = FinishRows<finish_knobs(config), count, columns>;
    using Ahead = typename Finishing::Ahead;

    TH_DEVICE Part(const Operation& operation, u32) : params_(operation.params_) {}

    TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const { return finishing(tile).ahead(tile); }

    TH_DEVICE void multiply(Sums& sums, Shared<u8> slot) const {
      TH_UNROLL
      for (int panel = 0; panel < slots.panels(); ++panel) {
        const auto tokens = Slots::tokens(slot, panel, 0);
        const auto weights = Slots::weights(slot, panel, 0);
        TH_UNROLL
        for (int k = 0; k < slots.panel_k(); k += 16) {
          TH_UNROLL
          for (int t = 0; t < count; ++t) {
            Engine::template multiply<Element>(sums.tile[t], tokens.advance(t * sum_rows * slots.row_bytes() + k * 2),
                                               weights.advance(k * 2), true);
          }
        }
      }
    }

    TH_DEVICE void finish(Sums& sums, const pipeline::GroupTile& tile, Shared<u8>, const Ahead& ahead) const {
      finishing(tile).write(sums, tile, ahead);
    }

   private:
    using Element = typename NumberType<config.operand>::type;

    TH_DEVICE Finishing finishing(const pipeline::GroupTile& tile) const {
      return {params_.finish, tile.column * tile_outputs(config)};
    }

    const PlainParams& params_;
  };

 private:
  const PlainParams& params_;
};

}  // namespace thresher::strategies::grouped_gemm::rows
