#pragma once
/// The grouped GEMMs in BF16 and FP16 as the grouped skeleton runs them.
#include "machine/tma.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/grouped/skeleton.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/grouped_gemm/columns/config.hpp"
#include "strategies/grouped_gemm/columns/params.hpp"
#include "strategies/grouped_gemm/device/finish.hpp"

namespace thresher::strategies::grouped_gemm::columns {

using namespace machine;

template <Config config>
class Operation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr u32 tile_rows = config.block_tokens;
  static constexpr bool makes_operand = false;
  static constexpr bool inspects = config.gathered;
  using Engine = EngineOf<Arch::sm_90a>;

  TH_DEVICE explicit Operation(const Params& params) : params_(params) {}

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return (params_.k + config.block_k - 1) / config.block_k; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.gate);
    if constexpr (config.matrices == 2) {
      tma::prefetch(params_.up);
    }
    tma::prefetch(params_.few_tokens);
    tma::prefetch(params_.many_tokens);
  }

  TH_DEVICE u32 inspect(const pipeline::GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<inspects>(params_.groups, flags); }

  TH_DEVICE u32 slot_load_bytes(const pipeline::GroupTile& tile) const {
    return weight_bytes(config) + panels(config) * pipeline::rung_of(tile.rows, tile_rows) * row_bytes;
  }

  TH_DEVICE void load(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    constexpr u32 box_bytes = weight_box_rows(config) * row_bytes;
    const i32 group = static_cast<i32>(tile.group);
    const i32 output = static_cast<i32>(tile.column * tile_outputs(config));
    const u32 rung = pipeline::rung_of(tile.rows, tile_rows);
    TH_UNROLL
    for (int panel = 0; panel < panels(config); ++panel) {
      const i32 k = static_cast<i32>(k_step * config.block_k + panel * panel_k);
      const Shared<u8> weights = slot.base.offset_bytes(token_bytes(config) + panel * weight_panel_bytes(config));
      tma::load(weights, params_.gate, slot.full, At{k, output, group});
      if constexpr (config.matrices == 2) {
        tma::load(weights.offset_bytes(box_bytes), params_.up, slot.full, At{k, output, group});
      } else {
        tma::load(weights.offset_bytes(box_bytes), params_.gate, slot.full,
                  At{k, output + weight_box_rows(config), group});
      }
      pipeline::load_tokens<tile_rows>(slot, panel * token_panel_bytes(config),
                                       {params_.few_tokens, params_.many_tokens}, tile,
                                       groups().slots != 0 ? tile.group : 0, rung, k);
    }
  }

  /// A math warpgroup's work on tiles of so many columns.
  template <u32 columns>
  class Part {
   public:
    using Sums = pipeline::AccumulatorTiles<Engine, static_cast<int>(columns), 2>;
    using Finishing = Finish<finish_knobs(config), TwoTiles<config.matrices>, columns>;
    using Ahead = typename Finishing::Ahead;

    TH_DEVICE Part(const Operation& operation, u32 warpgroup)
        : params_(operation.params_), warpgroup_(warpgroup) {}

    TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const { return finishing(tile).ahead(tile); }

    TH_DEVICE void multiply(Sums& sums, Shared<u8> slot) const {
      TH_UNROLL
      for (int panel = 0; panel < panels(config); ++panel) {
        const auto tokens = operand(slot.offset_bytes(panel * token_panel_bytes(config)));
        const auto weights = operand(slot.offset_bytes(token_bytes(config) + panel * weight_panel_bytes(config) +
                                                       warpgroup_ * sum_rows * row_bytes));
        TH_UNROLL
        for (int k = 0; k < panel_k; k += 16) {
          TH_UNROLL
          for (int t = 0; t < 2; ++t) {
            Engine::template multiply<Element>(sums.tile[t],
                                               weights.advance(t * weight_box_rows(config) * row_bytes + k * 2),
                                               tokens.advance(k * 2), true);
          }
        }
      }
    }

    TH_DEVICE void finish(Sums& sums, const pipeline::GroupTile& tile, Shared<u8> staging, const Ahead& ahead) const {
      finishing(tile).write(sums, tile, staging, ahead, [](float sum, int, int, int) { return sum; });
    }

   private:
    using Element = typename NumberType<config.operand>::type;

    static TH_DEVICE typename Engine::template Descriptor<Swizzle::b128> operand(Shared<u8> start) {
      return Engine::template descriptor<Swizzle::b128>(start, 0, 8 * row_bytes);
    }
    TH_DEVICE Finishing finishing(const pipeline::GroupTile& tile) const {
      return {params_.finish,
              {tile.column * tile_outputs(config) + warpgroup_ * sum_rows, weight_box_rows(config), warpgroup_}};
    }

    const Params& params_;
    u32 warpgroup_;
  };

 private:
  const Params& params_;
};

}  // namespace thresher::strategies::grouped_gemm::columns
