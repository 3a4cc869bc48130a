#pragma once
/// Dense products of one matrix or two in BF16 and FP16 as the skeleton runs it: what to load, to multiply and to
/// write.
#include "machine/tma.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/operation.hpp"
#include "pipeline/output.hpp"
#include "pipeline/schedule.hpp"
#include "pipeline/wgmma_skeleton.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/finish_inputs.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/wgmma/fused/config.hpp"
#include "strategies/gemm/wgmma/fused/params.hpp"

namespace thresher::strategies::gemm::fused {

using namespace machine;

template <Config config>
class Operation {
 public:
  static constexpr pipeline::Shape shape = shape_of(config);
  static constexpr pipeline::Hooks hooks{.prepare = true};
  using Engine = EngineOf<machine::Arch::sm_90a>;
  static constexpr bool one_by_one = passes(config) == 2;
  /// Sequential keeps gate and up in tiles of their own; otherwise one tile holds both side by side.
  static constexpr int sum_tiles = config.warpgroup_tiles * (one_by_one ? 2 : 1);
  static constexpr int merge_pieces = has_one_matrix(config) ? 1 : 2;
  using Sums = pipeline::AccumulatorTiles<Engine, slot_weights(config), sum_tiles>;
  using Element = typename NumberType<config.operand>::type;
  using Result = typename NumberType<config.output>::type;

  struct Tile {
    i32 token = 0;
    i32 output = 0;
  };

  TH_DEVICE explicit Operation(const Params& params)
      : slot_load_bytes(weight_bytes(config) + (whole_tokens(params) ? token_bytes(config) : few_token_bytes(params))),
        params_(params) {}

  /// The bytes that the copies of one stage load.
  const u32 slot_load_bytes;

  TH_DEVICE u32 tiles() const { return params_.token_tiles / config.multicast * params_.output_tiles; }

  TH_DEVICE Tile tile(u32 group, u32 member) const {
    const auto index = pipeline::tile_of<config.raster, config.multicast>(
        pipeline::TileGrid{params_.token_tiles, params_.output_tiles}, group, member);
    return {static_cast<i32>(index.row * block_tokens(config)), static_cast<i32>(index.column * config.block_outputs)};
  }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.tokens);
    tma::prefetch(params_.gate);
    if constexpr (config.matrices == 2) {
      tma::prefetch(params_.up);
    }
  }

  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE u32 k_steps() const { return (params_.k + config.block_k - 1) / config.block_k; }

  template <int pass>
  TH_DEVICE void load(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step, u32 member) const {
    TH_UNROLL
    for (int panel = 0; panel < config.block_k / panel_k; ++panel) {
      const i32 k = static_cast<i32>(k_step * config.block_k + panel * panel_k);
      load_tokens(slot, tile, panel, k);
      load_weights<pass>(slot, tile, panel, k, member);
    }
  }

  template <int pass>
  TH_DEVICE void math(Sums& sums, Shared<u8> slot, u32 warpgroup) const {
    const u32 first_row = config.order == Order::pingpong ? 0 : warpgroup * config.warpgroup_tiles * 64;
    TH_UNROLL
    for (int panel = 0; panel < config.block_k / panel_k; ++panel) {
      const auto tokens = operand(slot.offset_bytes(panel * token_panel_bytes + first_row * row_bytes));
      const auto weights = operand(slot.offset_bytes(token_bytes(config) + panel * weight_panel_bytes));
      TH_UNROLL
      for (int k = 0; k < panel_k; k += 16) {
        TH_UNROLL
        for (int t = 0; t < config.warpgroup_tiles; ++t) {
          Engine::multiply<Element>(sums.tile[pass * config.warpgroup_tiles + t],
                                    tokens.advance(t * 64 * row_bytes + k * 2), weights.advance(k * 2), true);
        }
      }
    }
  }

  TH_DEVICE void finish(Sums& sums, const Tile& tile, u32 warpgroup, u32 half, Shared<u8> staging) const {
    const u32 warpgroup_row = config.order == Order::pingpong ? 0 : warpgroup * config.warpgroup_tiles * 64;
    const pipeline::OutputOrigin origin{tile.token + warpgroup_row, tile.output + half * finished_columns(config)};
    const auto value = [&](int t, int group, int row_half) { return outputs(sums, origin, t, group, row_half); };
    if constexpr (config.epilogue == Epilogue::tma) {
      Staged::write(params_.output, staging, origin, 1 + warpgroup, value);
    } else {
      const pipeline::OutputMatrix<Result> matrix{params_.c.template as<Result>(), params_.c_row_stride, params_.m,
                                                  params_.n, params_.c_wide};
      Direct::write(matrix, origin, value);
    }
  }

  /// With few tokens the copies leave the rest of a slot's token rows alone: zeros, once. Whether this thread wrote
  /// any.
  TH_DEVICE bool prepare(Shared<u8> slots, u32 math_thread) const {
    if (whole_tokens(params_)) {
      return false;
    }
    const u32 first = params_.token_rows * row_bytes;
    for (u32 slot = 0; slot < config.stages; ++slot) {
      for (u32 panel = 0; panel < config.block_k / panel_k; ++panel) {
        const Shared<u8> base = slots.offset_bytes(slot * shape.slot_bytes + panel * token_panel_bytes);
        for (u32 byte = first + math_thread * 16; byte < token_panel_bytes;
             byte += 16 * pipeline::math_threads(shape)) {
          base.offset_bytes(byte).template as<Vector<u32, 4>>().store(0, Vector<u32, 4>{{0, 0, 0, 0}});
        }
      }
    }
    return true;
  }

  TH_DEVICE void drain() const {
    if constexpr (config.epilogue == Epilogue::tma) {
      Staged::drain();
    }
  }

 private:
  static constexpr u32 row_bytes = panel_k * 2;
  static constexpr u32 token_panel_bytes = block_tokens(config) * row_bytes;
  static constexpr u32 weight_panel_bytes = slot_weights(config) * row_bytes;
  static constexpr int groups = finished_columns(config) / 8;
  static constexpr u32 box_rows = block_tokens(config) < 256 ? block_tokens(config) : 256;

  static TH_DEVICE bool whole_tokens(const Params& params) { return params.token_rows == box_rows; }
  /// Few tokens fit into one box.
  static TH_DEVICE u32 few_token_bytes(const Params& params) {
    return config.block_k / panel_k * params.token_rows * row_bytes;
  }
  using Direct = pipeline::DirectOutput<Result, config.warpgroup_tiles, groups>;
  using Staged = pipeline::StagedOutput<config.warpgroup_tiles, groups>;

  static TH_DEVICE Engine::Descriptor<Swizzle::b128> operand(Shared<u8> start) {
    return Engine::descriptor<Swizzle::b128>(start, 0, 8 * row_bytes);
  }

  /// A box has at most 256 rows.
  TH_DEVICE void load_tokens(const pipeline::LoadSlot& slot, const Tile& tile, int panel, i32 k) const {
    TH_UNROLL
    for (int row = 0; row < block_tokens(config); row += box_rows) {
      if (row > 0 && !whole_tokens(params_)) {
        break;
      }
      tma::load(slot.base.offset_bytes(panel * token_panel_bytes + row * row_bytes), params_.tokens, slot.full,
                At{k, tile.token + row});
    }
  }

  template <int pass>
  TH_DEVICE void load_weights(const pipeline::LoadSlot& slot, const Tile& tile, int panel, i32 k, u32 member) const {
    constexpr u32 rows = piece_rows(config);
    const Shared<u8> region = slot.base.offset_bytes(token_bytes(config) + panel * weight_panel_bytes);
    if constexpr (config.multicast == 1) {
      if constexpr (has_one_matrix(config)) {
        tma::load(region, pass == 0 ? params_.gate : params_.up, slot.full, At{k, tile.output});
      } else {
        tma::load(region, params_.gate, slot.full, At{k, tile.output});
        tma::load(region.offset_bytes(rows * row_bytes), params_.up, slot.full, At{k, tile.output});
      }
    } else {
      constexpr u32 pieces_per_matrix = config.block_outputs / rows;
      const bool is_up = has_one_matrix(config) ? pass == 1 : member >= pieces_per_matrix;
      const u32 piece = has_one_matrix(config) ? member : member % pieces_per_matrix;
      const u16 group_mask = static_cast<u16>(((1U << config.multicast) - 1U) << (cluster::rank() - member));
      const At at{k, static_cast<i32>(tile.output + piece * rows)};
      const Shared<u8> destination = region.offset_bytes(member * rows * row_bytes);
      if (is_up) {
        tma::load_multicast(destination, params_.up, slot.full, at, group_mask);
      } else {
        tma::load_multicast(destination, params_.gate, slot.full, at, group_mask);
      }
    }
  }

  /// Two neighbouring outputs of one row; `origin` is the warpgroup's first.
  TH_DEVICE auto outputs(const Sums& sums, const pipeline::OutputOrigin& origin, int t, int group, int row_half) const {
    float result[2];
    TH_UNROLL
    for (int e = 0; e < 2; ++e) {
      const u32 column = origin.column + group * 8 + warp::lane() % 4 * 2 + e;
      result[e] = output(sums, t, group * 4 + row_half * 2 + e, column);
    }
    return output_pair<config.output>(result);
  }

  /// The product, relu2 of it, or activation(gate)·up.
  TH_DEVICE float output(const Sums& sums, int t, int i, u32 column) const {
    const float gate = sums.tile[t].get(i);
    if constexpr (config.matrices == 1) {
      return activate_one<config.activation>(with_bias(gate, column));
    } else {
      const float up =
          one_by_one ? sums.tile[config.warpgroup_tiles + t].get(i) : sums.tile[t].get(Sums::elements / 2 + i);
      return activate<config.activation>(gate, up, params_);
    }
  }

  TH_DEVICE float with_bias(float sum, u32 column) const {
    if constexpr (config.bias) {
      return column < params_.n ? sum + bias_at(params_.bias, 0, column) : 0.0F;
    } else {
      return sum;
    }
  }

  const Params& params_;
};

/// The entry point: instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), 1)
kernel(TH_GRID_CONSTANT const Params params) {
  pipeline::run(Operation<config>(params));
}

}  // namespace thresher::strategies::gemm::fused
