#pragma once
/// The grouped GEMMs with packed NVFP4 weights as the grouped skeleton runs them.
#include "machine/tma.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "pipeline/wgmma_skeleton.hpp"
#include "strategies/dual_gemm/packed/device/operands.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/grouped_gemm/packed/config.hpp"
#include "strategies/grouped_gemm/packed/params.hpp"

namespace thresher::strategies::grouped_gemm::packed {

using namespace machine;

template <Config config>
struct OperandOf {
  using type = weights::ExactOperand<typename NumberType<config.operand>::type>;
};
template <Config config>
  requires(config.numerics == Numerics::fast)
struct OperandOf<config> {
  using type = weights::FastOperand;
};

template <Config config>
class Operation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr pipeline::Hooks hooks{.makes_operand = true, .inspects = config.gathered};
  static constexpr bool is_fast = config.numerics == Numerics::fast;
  using Engine = EngineOf<Arch::sm_90a>;
  using Operand = typename OperandOf<config>::type;

  TH_DEVICE explicit Operation(const Params& params) : params_(params) {}

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return params_.k_blocks / config.blocks_per_slot; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.few_tokens);
    tma::prefetch(params_.many_tokens);
  }

  TH_DEVICE u32 inspect(const pipeline::GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<hooks.inspects>(params_.groups, flags); }

  TH_DEVICE u32 slot_load_bytes(const pipeline::GroupTile& tile) const {
    return config.math_warpgroups * warpgroup_weight_bytes(config) +
           config.blocks_per_slot * pipeline::loaded_rows(tile.tile_width, tile_widths) * pipeline::token_row_bytes;
  }

  TH_DEVICE void load(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    const u64 group_bytes = static_cast<u64>(params_.k_blocks) * weight_block_bytes(config.numerics);
    const u64 start = tile.group * params_.expert_bytes + static_cast<u64>(k_step) * warpgroup_weight_bytes(config);
    TH_UNROLL
    for (u32 w = 0; w < config.math_warpgroups; ++w) {
      tma::load_bulk(slot.base.offset_bytes(token_bytes(config) + w * warpgroup_weight_bytes(config)),
                     params_.weights.offset(static_cast<i64>(start + output_group(tile, w) * group_bytes)),
                     warpgroup_weight_bytes(config), slot.full);
    }
    constexpr u32 token_block_elements = is_fast ? 128 : 64;
    TH_UNROLL
    for (u32 block = 0; block < config.blocks_per_slot; ++block) {
      const u32 k = (k_step * config.blocks_per_slot + block) * token_block_elements;
      pipeline::load_tokens<tile_widths>(slot, block * token_block_bytes(config),
                                         {params_.few_tokens, params_.many_tokens}, tile,
                                         groups().slots != 0 ? tile.group : 0, static_cast<i32>(k));
    }
  }

  /// A math warpgroup's work on tiles of so many columns.
  template <u32 columns>
  class Part {
   public:
    static constexpr pipeline::Shape shape = Operation::shape;
    using Engine = Operation::Engine;
    using Sums = pipeline::AccumulatorTiles<Engine, static_cast<int>(columns), 1>;
    using Finishing = Finish<finish_knobs(config), RowPairs<config.matrices>, columns>;
    using Element = typename Operand::Element;
    using Packed = typename Operand::Packed;
    static constexpr Overlap overlap = config.overlap;
    static constexpr int blocks_per_slot = config.blocks_per_slot;
    static constexpr int steps_per_block = Operand::steps;
    static constexpr int slots_together = blocks_per_slot == 1 && overlap != Overlap::none ? 2 : 1;
    static_assert(weights::k_block_multiple * weights::block_k %
                      (slots_together * blocks_per_slot * weight_block_k(config.numerics)) ==
                  0);

    /// Beside what every end needs, what the sums are multiplied by, as it lies in memory: multiplied only at the end,
    /// so that no thread waits for it before. Lane l has the factors of the tile's rows l, l + 32, …
    struct Ahead {
      typename Finishing::Ahead finishing;
      float token_scale;
      float scale[2];  ///< of the thread's two rows of each eight
      float factor[2];
      float token[(columns + 31) / 32];
    };

    TH_DEVICE Part(const Operation& operation, u32 warpgroup) : operation_(operation), warpgroup_(warpgroup) {}

    TH_DEVICE Packed fetch(Shared<u8> slot, int block, u32 warpgroup) const {
      const Shared<u8> of_warpgroup =
          slot.offset_bytes(token_bytes(config) + warpgroup * warpgroup_weight_bytes(config));
      return Operand::fetch(of_warpgroup.offset_bytes(block * weight_block_bytes(config.numerics)),
                            launch::thread_index() % 128);
    }
    TH_DEVICE typename Engine::Fragment expand(const Packed& words, int step) const {
      return Operand::expand(words, step);
    }
    TH_DEVICE typename Engine::template Descriptor<Swizzle::b128> other(Shared<u8> slot, int block) const {
      return Engine::template descriptor<Swizzle::b128>(slot.offset_bytes(block * token_block_bytes(config)), 0,
                                                        8 * pipeline::token_row_bytes);
    }
    static TH_DEVICE typename Engine::template Descriptor<Swizzle::b128> step(
        typename Engine::template Descriptor<Swizzle::b128> block, int k_step) {
      return block.advance(k_step * 32);
    }

    TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const {
      const Params& params = operation_.params_;
      const u32 slot = operation_.groups().slots != 0 ? tile.group : 0;
      const float gate = scale(params.gate_scales, tile.group);
      Ahead ahead{finishing(tile).ahead(tile),
                  scale(params.token_scales, slot),
                  {gate, config.matrices == 2 ? scale(params.up_scales, tile.group) : gate},
                  {1.0F, 1.0F},
                  {}};
      if constexpr (is_fast) {
        const u32 thread = launch::thread_index() % 128;
        const u32 output = thread / 32 * 8 + thread % 32 / 4;
        const u32 group = operation_.output_group(tile, warpgroup_);
        const Global<float> factors = params.row_factors.offset(static_cast<i64>(tile.group) * params.output_groups *
                                                                weights::fast::group_factors);
        ahead.factor[0] = factors.load(weights::fast::factor_index(group, false, output));
        ahead.factor[1] = factors.load(weights::fast::factor_index(group, true, output));
        const u64 first = static_cast<u64>(slot) * operation_.groups().rows + tile.row;
        TH_UNROLL
        for (u32 i = 0; i < (columns + 31) / 32; ++i) {
          const u32 row = i * 32 + warp::lane();
          ahead.token[i] = row < tile.rows ? token_factor(first + row) : 0.0F;
        }
      }
      return ahead;
    }

    TH_DEVICE void finish(Sums& sums, const pipeline::GroupTile& tile, Shared<u8> staging, const Ahead& ahead) const {
      const float both = operation_.params_.result_scale * ahead.token_scale;
      const float scales[2] = {both * ahead.scale[0] * ahead.factor[0], both * ahead.scale[1] * ahead.factor[1]};
      finishing(tile).write(sums, tile, staging, ahead.finishing, [&](float sum, int row, int group, int e) {
        if constexpr (is_fast) {
          const u32 token = static_cast<u32>(group % 4 * 8 + e) + warp::lane() % 4 * 2;
          return sum * (scales[row] * warp::shuffle(ahead.token[group / 4], token));
        } else {
          return sum * scales[row];
        }
      });
    }

   private:
    static TH_DEVICE float scale(Global<float> values, u32 index) {
      return values.is_null() ? 1.0F : values.load(index);
    }
    /// Of row `row` of C, which is the token's row but for gathered ones.
    TH_DEVICE float token_factor(u64 row) const {
      const Params& params = operation_.params_;
      if constexpr (config.gathered) {
        const u32 id = static_cast<u32>(params.finish.row_ids.load(static_cast<i64>(row)));
        return id < params.finish.ids_end ? params.token_factors.load(id / params.ids_divisor) : 0.0F;
      } else {
        return params.token_factors.load(static_cast<i64>(row));
      }
    }
    TH_DEVICE Finishing finishing(const pipeline::GroupTile& tile) const {
      return {operation_.params_.finish,
              {tile.column * tile_outputs(config) + warpgroup_ * warpgroup_outputs(config), 0, warpgroup_}};
    }

    const Operation& operation_;
    u32 warpgroup_;
  };

 private:
  /// Of a warpgroup. Those beyond the last repeat it and are not stored.
  TH_DEVICE u32 output_group(const pipeline::GroupTile& tile, u32 warpgroup) const {
    const u32 wanted = tile.column * config.math_warpgroups + warpgroup;
    return wanted < params_.output_groups ? wanted : params_.output_groups - 1;
  }

  const Params& params_;
};

}  // namespace thresher::strategies::grouped_gemm::packed
