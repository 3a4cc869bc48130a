#pragma once
/// The dual GEMM with packed NVFP4 weights as the skeleton runs it.
#include "machine/tma.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/operation.hpp"
#include "pipeline/output.hpp"
#include "pipeline/transposed_output.hpp"
#include "strategies/dual_gemm/packed/config.hpp"
#include "strategies/dual_gemm/packed/device/operands.hpp"
#include "strategies/dual_gemm/packed/params.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/number_type.hpp"

namespace thresher::strategies::dual_gemm::packed {

using namespace machine;

template <Config config>
struct OperandOf {
  using type = ExactOperand<typename NumberType<config.operand>::type>;
};
template <Config config>
  requires(config.numerics == Numerics::fast)
struct OperandOf<config> {
  using type = FastOperand;
};

template <Config config>
class Operation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::Hooks hooks{.ahead = true, .load_constant = true, .makes_operand = true};
  using Engine = EngineOf<Arch::sm_90a>;
  static constexpr int merge_pieces = 1;
  static constexpr int blocks_per_slot = config.blocks_per_slot;
  static constexpr int slots_together = blocks_per_slot == 1 && config.overlap != Overlap::none ? 2 : 1;
  static_assert(k_block_multiple * block_k % (slots_together * blocks_per_slot * weight_block_k(config)) == 0);
  using Operand = typename OperandOf<config>::type;
  static constexpr int steps_per_block = Operand::steps;
  static constexpr Overlap overlap = config.overlap;
  static constexpr u32 slot_load_bytes = packed::slot_load_bytes(config);
  using Sums = pipeline::AccumulatorTiles<Engine, config.block_tokens, 1>;
  using Element = typename Operand::Element;
  using Packed = typename Operand::Packed;
  using Result = typename NumberType<config.output>::type;
  static constexpr u32 token_factors_per_lane = (finished_tokens(config) + 31) / 32;

  struct Tile {
    u32 token = 0;
    u32 output_group = 0;
  };

  TH_DEVICE explicit Operation(const Params& params) : params_(params) {}

  TH_DEVICE u32 tiles() const { return params_.token_tiles * params_.output_tiles; }
  TH_DEVICE Tile tile(u32 index, u32) const {
    const u32 token_tile = index / params_.output_tiles;
    return {token_tile * config.block_tokens, (index - token_tile * params_.output_tiles) * config.math_warpgroups};
  }
  TH_DEVICE u32 k_steps() const { return params_.k_blocks / blocks_per_slot; }

  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const { tma::prefetch(params_.tokens); }

  /// Nothing that an earlier grid may write: weights. Groups beyond the last repeat it and are not stored.
  TH_DEVICE void load_constant(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step) const {
    const u64 group_stride = static_cast<u64>(params_.k_blocks) * weight_block_bytes(config);
    const u64 along_k = static_cast<u64>(k_step) * warpgroup_weight_bytes(config);
    TH_UNROLL
    for (u32 w = 0; w < config.math_warpgroups; ++w) {
      const u32 wanted = tile.output_group + w;
      const u32 group = wanted < params_.output_groups ? wanted : params_.output_groups - 1;
      tma::load_bulk(slot.base.offset_bytes(token_bytes(config) + w * warpgroup_weight_bytes(config)),
                     params_.weights.offset(static_cast<i64>(group * group_stride + along_k)),
                     warpgroup_weight_bytes(config), slot.full);
    }
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

  TH_DEVICE Packed fetch(Shared<u8> slot, int block, u32 warpgroup) const {
    const Shared<u8> weights = slot.offset_bytes(token_bytes(config) + warpgroup * warpgroup_weight_bytes(config));
    return Operand::fetch(weights.offset_bytes(block * weight_block_bytes(config)), launch::thread_index() % 128);
  }

  TH_DEVICE Engine::Fragment expand(const Packed& packed, int step) const { return Operand::expand(packed, step); }

  TH_DEVICE Engine::Descriptor<Swizzle::b128> other(Shared<u8> slot, int block) const {
    return Engine::descriptor<Swizzle::b128>(slot.offset_bytes(block * token_block_bytes(config)), 0,
                                             8 * token_row_bytes);
  }
  static TH_DEVICE Engine::Descriptor<Swizzle::b128> step(Engine::Descriptor<Swizzle::b128> block, int k_step) {
    return block.advance(k_step * 32);
  }

  /// What the sums are multiplied by, as it lies in memory: multiplied only at the end, so that no thread waits for it
  /// before. Lane l has the factors of tokens l, l + 32, …
  struct Ahead {
    float token_scale;
    float gate_scale;
    float up_scale;
    float gate_factor;
    float up_factor;
    float token[token_factors_per_lane];
  };
  TH_DEVICE Ahead ahead(const Tile& tile, u32 warpgroup, u32 half) const {
    Ahead ahead{scale(params_.token_scale), scale(params_.gate_scale), scale(params_.up_scale), 1.0F, 1.0F, {}};
    if constexpr (config.numerics == Numerics::fast) {
      const u32 thread = launch::thread_index() % 128;
      const u32 wanted = tile.output_group + warpgroup;
      const u32 group = wanted < params_.output_groups ? wanted : params_.output_groups - 1;
      const u32 output = thread / 32 * 8 + thread % 32 / 4;
      ahead.gate_factor = params_.row_factors.load(fast::factor_index(group, false, output));
      ahead.up_factor = params_.row_factors.load(fast::factor_index(group, true, output));
      TH_UNROLL
      for (u32 i = 0; i < token_factors_per_lane; ++i) {
        const u32 token = tile.token + half * finished_tokens(config) + i * 32 + warp::lane();
        ahead.token[i] = token < params_.m ? params_.token_factors.load(token) : 0.0F;
      }
    }
    return ahead;
  }

  TH_DEVICE void finish(Sums& sums, const Tile& tile, u32 warpgroup, u32 half, Shared<u8> staging,
                        const Ahead& ahead) const {
    constexpr int tokens = finished_tokens(config);
    const float both = params_.result_scale * ahead.token_scale;
    const Scales scales{both * ahead.gate_scale * ahead.gate_factor, both * ahead.up_scale * ahead.up_factor};
    const auto value = [&](int group) { return outputs(sums, group, scales, ahead); };
    const pipeline::OutputMatrix<Result> matrix{params_.c.template as<Result>(), params_.c_row_stride, params_.m,
                                                params_.n, params_.c_wide};
    const pipeline::OutputOrigin origin{tile.token + half * tokens, (tile.output_group + warpgroup) * block_outputs_};
    if constexpr (config.output == Number::fp32) {
      pipeline::TransposedFloatOutput<tokens>::write(matrix, origin, value);
    } else {
      pipeline::TransposedOutput<Result, tokens>::write(matrix, origin, staging, 1 + warpgroup, value);
    }
  }

  TH_DEVICE void drain() const {}

 private:
  static constexpr u32 block_outputs_ = pipeline::warpgroup_outputs;

  static TH_DEVICE float scale(Global<float> value) { return value.is_null() ? 1.0F : value.load(); }

  /// Of a thread's two rows.
  struct Scales {
    float gate;
    float up;
  };

  /// Of the group's token 2·(lane % 4) + `odd`.
  static TH_DEVICE float token_factor(const Ahead& ahead, int group, u32 odd) {
    if constexpr (config.numerics == Numerics::fast) {
      return warp::shuffle(ahead.token[group / 4], static_cast<u32>(group % 4 * 8) + warp::lane() % 4 * 2 + odd);
    } else {
      return 1.0F;
    }
  }

  /// One output for two neighbouring tokens: gate is row r of the tile, up row r + 8.
  TH_DEVICE auto outputs(const Sums& sums, int group, const Scales& scales, const Ahead& ahead) const {
    float result[2];
    TH_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float factor = token_factor(ahead, group, e);
      const float gate = sums.tile[0].get(group * 4 + e) * (scales.gate * factor);
      const float up = sums.tile[0].get(group * 4 + 2 + e) * (scales.up * factor);
      result[e] = dual_gemm::activate<config.activation>(gate, up, params_);
    }
    if constexpr (config.output == Number::fp32) {
      return Vector<float, 2>{{result[0], result[1]}};
    } else {
      return convert::pack<Result>(result[0], result[1]);
    }
  }

  const Params& params_;
};

}  // namespace thresher::strategies::dual_gemm::packed
