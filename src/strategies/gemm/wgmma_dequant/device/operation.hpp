#pragma once
/// The products with packed NVFP4 weights as the skeletons run them, and their entry point.
#include "machine/tma.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "pipeline/output.hpp"
#include "pipeline/transposed_output.hpp"
#include "pipeline/wgmma_skeleton.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/wgmma_dequant/config.hpp"
#include "strategies/gemm/wgmma_dequant/device/operand.hpp"
#include "strategies/gemm/wgmma_dequant/params.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

using namespace machine;

/// How consumer warpgroups read a stage: the members that MakesOperand asks for.
template <Config config>
class StageOperands {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  using Engine = EngineOf<Arch::sm_90a>;
  using Operand = conditional<config.numerics == Numerics::fast, FastOperand,
                              ExactOperand<typename NumberType<config.operand>::type>>;
  using Element = typename Operand::Element;
  using Packed = typename Operand::Packed;
  static constexpr Overlap overlap = config.overlap;
  static constexpr int blocks_per_slot = config.blocks_per_slot;
  static constexpr int steps_per_block = Operand::steps;
  static constexpr int slots_together = stages_at_once(config);
  static_assert(!config.dense || k_block_multiple * block_k % (slots_together * stage_k(config)) == 0);

  static TH_DEVICE Packed fetch(Shared<u8> slot, int block, u32 warpgroup) {
    const Shared<u8> weights = slot.offset_bytes(token_bytes(config) + warpgroup * warpgroup_weight_bytes(config));
    return Operand::fetch(weights.offset_bytes(block * weight_block_bytes(config.numerics)),
                          launch::thread_index() % 128);
  }
  static TH_DEVICE typename Engine::Fragment expand(const Packed& packed, int step) {
    return Operand::expand(packed, step);
  }
  static TH_DEVICE typename Engine::template Descriptor<Swizzle::b128> other(Shared<u8> slot, int block) {
    return Engine::template descriptor<Swizzle::b128>(slot.offset_bytes(block * token_block_bytes(config)), 0,
                                                      8 * token_row_bytes);
  }
  static TH_DEVICE typename Engine::template Descriptor<Swizzle::b128> step(
      typename Engine::template Descriptor<Swizzle::b128> block, int k_step) {
    return block.advance(k_step * 32);
  }
};

/// Groups of outputs beyond the last repeat it and are not stored.
TH_DEVICE u32 output_group(u32 wanted, u32 groups) { return wanted < groups ? wanted : groups - 1; }

/// The weights of one stage, of which `start` bytes lie before those of group 0; the tile begins with group `first`.
template <Config config, class Params>
TH_DEVICE void load_weights(const pipeline::LoadSlot& slot, const Params& params, u64 start, u32 first) {
  const u64 group_bytes = static_cast<u64>(params.k_blocks) * weight_block_bytes(config.numerics);
  TH_UNROLL
  for (u32 w = 0; w < config.math_warpgroups; ++w) {
    const u32 group = output_group(first + w, params.output_groups);
    tma::load_bulk(slot.base.offset_bytes(token_bytes(config) + w * warpgroup_weight_bytes(config)),
                   params.weights.offset(static_cast<i64>(start + group * group_bytes)), warpgroup_weight_bytes(config),
                   slot.full);
  }
}

/// The factors of finished sums as they lie in memory: they are multiplied only at the end, so that no thread waits for
/// them before. Lane l has those of the tile's tokens l, l + 32, …
template <Config config, u32 tokens>
struct Factors {
  static constexpr u32 words = (tokens + 31) / 32;
  float token_scale;
  float scale[2];  ///< of the thread's two rows of each eight
  float factor[2] = {1.0F, 1.0F};
  float token[words] = {};

  TH_DEVICE void load_rows(Global<float> factors, u32 group) {
    const u32 thread = launch::thread_index() % 128;
    const u32 output = thread / 32 * 8 + thread % 32 / 4;
    factor[0] = factors.load(fast::factor_index(group, false, output));
    factor[1] = factors.load(fast::factor_index(group, true, output));
  }
  /// Loads the factors of the tokens from `first` to `end`.
  template <class TokenFactor>
  TH_DEVICE void load_tokens(u32 first, u32 end, const TokenFactor& token_factor) {
    TH_UNROLL
    for (u32 i = 0; i < words; ++i) {
      const u32 at = first + i * 32 + warp::lane();
      token[i] = at < end ? token_factor(at) : 0.0F;
    }
  }
  /// The factor of row 0 or 1, for all tokens.
  TH_DEVICE float of_row(int row, float result_scale) const {
    return result_scale * token_scale * scale[row] * factor[row];
  }
  /// The factor of token 2·(lane % 4) + e of a group of eight.
  TH_DEVICE float of_token(int group, int e) const {
    return warp::shuffle(token[group / 4], static_cast<u32>(group % 4 * 8 + e) + warp::lane() % 4 * 2);
  }
};

TH_DEVICE float global_scale(Global<float> values, u32 index) { return values.is_null() ? 1.0F : values.load(index); }

template <Config config>
class DenseOperation : public StageOperands<config> {
 public:
  using Params = DenseParams;
  using Operands = StageOperands<config>;
  using Operands::blocks_per_slot;
  using typename Operands::Engine;
  static constexpr pipeline::Hooks hooks{.ahead = true, .load_constant = true, .makes_operand = true};
  static constexpr int merge_pieces = 1;
  static constexpr u32 slot_load_bytes = token_bytes(config) + weight_bytes(config);
  using Sums = pipeline::AccumulatorTiles<Engine, config.block_tokens, 1>;
  using Result = typename NumberType<config.output>::type;
  using Ahead = Factors<config, finished_tokens(config)>;

  struct Tile {
    u32 token = 0;
    u32 output_group = 0;
  };

  TH_DEVICE explicit DenseOperation(const DenseParams& params) : params_(params) {}

  TH_DEVICE u32 tiles() const { return params_.token_tiles * params_.output_tiles; }
  TH_DEVICE Tile tile(u32 index, u32) const {
    const u32 token_tile = index / params_.output_tiles;
    return {token_tile * config.block_tokens, (index - token_tile * params_.output_tiles) * config.math_warpgroups};
  }
  TH_DEVICE u32 k_steps() const { return params_.k_blocks / blocks_per_slot; }

  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const { tma::prefetch(params_.tokens); }

  /// Nothing that an earlier grid may write: weights.
  TH_DEVICE void load_constant(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step) const {
    load_weights<config>(slot, params_, static_cast<u64>(k_step) * warpgroup_weight_bytes(config), tile.output_group);
  }

  TH_DEVICE void load_fresh(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step) const {
    if (config.numerics == Numerics::exact && k_step >= params_.ragged_slot) {
      TH_UNROLL
      for (int block = 0; block < blocks_per_slot; ++block) {
        const u32 column = (k_step * blocks_per_slot + static_cast<u32>(block)) * block_k;
        tma::load(slot.base.offset_bytes(block * token_block_bytes(config)), params_.ragged_tokens, slot.full,
                  At{static_cast<i32>(column), static_cast<i32>(tile.token)});
      }
      return;
    }
    tma::load(slot.base, params_.tokens, slot.full,
              At{0, static_cast<i32>(tile.token), static_cast<i32>(k_step * blocks_per_slot)});
  }

  TH_DEVICE Ahead ahead(const Tile& tile, u32 warpgroup, u32 half) const {
    const OperandScales& scales = params_.scales;
    Ahead ahead{global_scale(scales.tokens, 0), {global_scale(scales.gate, 0), global_scale(scales.up, 0)}};
    if constexpr (config.numerics == Numerics::fast) {
      ahead.load_rows(scales.row_factors, output_group(tile.output_group + warpgroup, params_.output_groups));
      ahead.load_tokens(tile.token + half * finished_tokens(config), params_.m,
                        [&](u32 token) { return scales.token_factors.load(token); });
    }
    return ahead;
  }

  TH_DEVICE void finish(Sums& sums, const Tile& tile, u32 warpgroup, u32 half, Shared<u8> staging,
                        const Ahead& ahead) const {
    constexpr int tokens = finished_tokens(config);
    const float scales[2] = {ahead.of_row(0, params_.result_scale), ahead.of_row(1, params_.result_scale)};
    const auto value = [&](int group) { return outputs(sums, group, scales, ahead); };
    const pipeline::OutputMatrix<Result> matrix{params_.c.template as<Result>(), params_.c_row_stride, params_.m,
                                                params_.n, params_.c_wide};
    const pipeline::OutputOrigin origin{tile.token + half * tokens, (tile.output_group + warpgroup) * block_outputs};
    if constexpr (config.output == Number::fp32) {
      pipeline::TransposedFloatOutput<tokens>::write(matrix, origin, value);
    } else {
      pipeline::TransposedOutput<Result, tokens>::write(matrix, origin, staging, 1 + warpgroup, value);
    }
  }

  TH_DEVICE void drain() const {}

 private:
  /// One output for two neighbouring tokens: gate is row r of the tile, up row r + 8.
  TH_DEVICE auto outputs(const Sums& sums, int group, const float (&scales)[2], const Ahead& ahead) const {
    float result[2];
    TH_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float factor = config.numerics == Numerics::fast ? ahead.of_token(group, e) : 1.0F;
      const float gate = sums.tile[0].get(group * 4 + e) * (scales[0] * factor);
      const float up = sums.tile[0].get(group * 4 + 2 + e) * (scales[1] * factor);
      result[e] = activate<config.activation>(gate, up, params_);
    }
    if constexpr (config.output == Number::fp32) {
      return Vector<float, 2>{{result[0], result[1]}};
    } else {
      return convert::pack<Result>(result[0], result[1]);
    }
  }

  const DenseParams& params_;
};

template <Config config>
class GroupedOperation {
 public:
  using Params = GroupedParams;
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr bool knows_rows = config.static_tiles;
  static constexpr pipeline::Hooks hooks{.load_constant = true, .makes_operand = true, .inspects = config.gathered};
  static constexpr bool is_fast = config.numerics == Numerics::fast;
  using Engine = typename StageOperands<config>::Engine;

  TH_DEVICE explicit GroupedOperation(const GroupedParams& params) : params_(params) {}

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return params_.k_steps; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.few_tokens);
    tma::prefetch(params_.many_tokens);
  }

  TH_DEVICE u32 inspect(const pipeline::GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<hooks.inspects>(params_.groups, flags); }

  TH_DEVICE u32 slot_load_bytes(const pipeline::GroupTile& tile) const {
    return weight_bytes(config) +
           config.blocks_per_slot * pipeline::loaded_rows(tile.tile_width, tile_widths) * token_row_bytes;
  }

  TH_DEVICE void load(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    load_constant(slot, tile, k_step);
    load_fresh(slot, tile, k_step);
  }
  /// Weights, which no earlier launch writes.
  TH_DEVICE void load_constant(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    load_weights<config>(slot, params_,
                         tile.group * params_.expert_bytes + static_cast<u64>(k_step) * warpgroup_weight_bytes(config),
                         tile.column * config.math_warpgroups);
  }
  TH_DEVICE void load_fresh(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step) const {
    TH_UNROLL
    for (u32 block = 0; block < config.blocks_per_slot; ++block) {
      const u32 k = (k_step * config.blocks_per_slot + block) * weight_block_k(config.numerics);
      pipeline::load_tokens<tile_widths>(slot, block * token_block_bytes(config),
                                         {params_.few_tokens, params_.many_tokens}, tile, token_slot(tile),
                                         static_cast<i32>(k));
    }
  }

  /// A consumer warpgroup's work on tiles of so many columns.
  template <u32 columns>
  class Part : public StageOperands<config> {
   public:
    using Sums = pipeline::AccumulatorTiles<Engine, static_cast<int>(columns), 1>;
    static constexpr u32 kept = pipeline::kept_columns(shape, columns);
    using Finishing = Finish<finish_knobs(config), RowPairs<config.matrices>, kept>;

    struct Ahead {
      typename Finishing::Ahead finishing;
      Factors<config, kept> factors;
    };

    TH_DEVICE Part(const GroupedOperation& operation, u32 warpgroup)
        : operation_(operation), params_(operation.params_), warpgroup_(warpgroup) {}

    TH_DEVICE Ahead ahead(const pipeline::GroupTile&, const pipeline::GroupTile& tile) const {
      const OperandScales& scales = params_.scales;
      const u32 slot = operation_.token_slot(tile);
      const float gate = global_scale(scales.gate, tile.group);
      Ahead ahead{finishing(tile).ahead(tile),
                  {global_scale(scales.tokens, slot),
                   {gate, config.matrices == 2 ? global_scale(scales.up, tile.group) : gate}}};
      if constexpr (is_fast) {
        const u32 group = output_group(tile.column * config.math_warpgroups + warpgroup_, params_.output_groups);
        ahead.factors.load_rows(
            scales.row_factors.offset(static_cast<i64>(tile.group) * params_.output_groups * fast::group_factors),
            group);
        const u64 first = static_cast<u64>(slot) * operation_.groups().rows + tile.row;
        ahead.factors.load_tokens(0, tile.rows, [&](u32 row) { return token_factor(first + row); });
      }
      return ahead;
    }

    TH_DEVICE void finish(Sums& sums, const pipeline::GroupTile& tile, Shared<u8> staging, const Ahead& ahead) const {
      const Factors<config, kept>& factors = ahead.factors;
      const float scales[2] = {factors.of_row(0, params_.result_scale), factors.of_row(1, params_.result_scale)};
      finishing(tile).write(sums, tile, staging, ahead.finishing, [&](float sum, int row, int group, int e) {
        if constexpr (is_fast) {
          return sum * (scales[row] * factors.of_token(group, e));
        } else {
          return sum * scales[row];
        }
      });
    }

   private:
    /// The factor of row `row` of C, which is the token's row but for gathered ones.
    TH_DEVICE float token_factor(u64 row) const {
      const Global<float> factors = params_.scales.token_factors;
      if constexpr (config.gathered) {
        const u32 id = static_cast<u32>(params_.finish.row_ids.load(static_cast<i64>(row)));
        return id < params_.finish.ids_end ? factors.load(id / params_.ids_divisor) : 0.0F;
      } else {
        return factors.load(static_cast<i64>(row));
      }
    }
    TH_DEVICE Finishing finishing(const pipeline::GroupTile& tile) const {
      return {params_.finish,
              {tile.column * tile_outputs(config) + warpgroup_ * warpgroup_outputs(config.matrices), 0, warpgroup_}};
    }

    const GroupedOperation& operation_;
    const GroupedParams& params_;
    u32 warpgroup_;
  };

 private:
  /// The slot of a tile's tokens and token scales.
  TH_DEVICE u32 token_slot(const pipeline::GroupTile& tile) const { return groups().slots != 0 ? tile.group : 0; }

  const GroupedParams& params_;
};

template <Config config>
using Operation = conditional<config.dense, DenseOperation<config>, GroupedOperation<config>>;

/// Instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), config.blocks_resident)
kernel(TH_GRID_CONSTANT const typename Operation<config>::Params params) {
  if constexpr (config.dense) {
    pipeline::run(Operation<config>(params));
  } else {
    pipeline::run_grouped(Operation<config>(params));
  }
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
