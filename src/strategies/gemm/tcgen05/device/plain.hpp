#pragma once
/// The products of plain operands as the tcgen05 skeleton runs them, and their entry point. NVRTC instantiates it per
/// Config for Blackwell, and the host's compiler for the emulator.
#include "machine/numbers.hpp"
#include "machine/tcgen05.hpp"
#include "machine/tma.hpp"
#include "pipeline/grouped/tensor_tokens.hpp"
#include "pipeline/tcgen05_skeleton.hpp"
#include "strategies/gemm/device/dense_output.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/device/plain_scales.hpp"
#include "strategies/gemm/device/row_scales.hpp"
#include "strategies/gemm/tcgen05/config.hpp"
#include "strategies/gemm/tcgen05/params.hpp"

namespace thresher::strategies::gemm::tcgen05 {

using namespace machine;
namespace instructions = machine::tcgen05;
using pipeline::BlockPlace;
using pipeline::GroupTile;

/// Outputs in eights, of each finishing warp.
inline constexpr int warp_eights = static_cast<int>(block_rows / pipeline::warpgroup_outputs);

/// A tile of the dense dual GEMM: its first token, and the first output of this block.
struct DenseTile {
  u32 token;
  u32 output;
};

/// The common part of both kinds of tiles: copies of weights, and products.
template <Config config, class OfParams, class OfTile>
class Products {
 public:
  using Params = OfParams;
  using Tile = OfTile;
  static constexpr pipeline::TensorShape shape = shape_of(config);

  TH_DEVICE explicit Products(const Params& params) : params_(params) {}

  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.gate);
    if constexpr (config.matrices == 2) {
      tma::prefetch(params_.up);
    }
    if constexpr (config.dense) {
      tma::prefetch(params_.tokens);
    } else {
      tma::prefetch(params_.few_tokens);
      tma::prefetch(params_.many_tokens);
    }
  }

  TH_DEVICE u32 slot_load_bytes(const Tile& tile) const {
    return weight_bytes(config) + block_tokens(tile) * slot_row_bytes;
  }

  /// Rows of weights beyond the last are zeros.
  TH_DEVICE void load_weights(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step, u32 member) const {
    const i32 k = static_cast<i32>(k_step * slot_k(config));
    const i32 output = static_cast<i32>(first_output(tile, member));
    if constexpr (config.dense) {
      load_matrices(slot, At{k, output});
    } else {
      load_matrices(slot, At{k, output, static_cast<i32>(tile.group)});
    }
  }

  /// The gate's sums, and those of the up in the columns behind them.
  TH_DEVICE void multiply(Shared<u8> slot, tensor_memory::Columns sums, tensor_memory::Columns, u32 tile_width,
                          bool first) const {
    constexpr instructions::Instruction widest =
        instructions::instruction<kind, Element>(block_rows * config.blocks, config.block_tokens);
    const instructions::Instruction word = widest.with_columns(config.dense ? config.block_tokens : tile_width);
    const auto tokens = operand(slot.offset_bytes(weight_bytes(config)));
    TH_UNROLL
    for (u32 matrix = 0; matrix < config.matrices; ++matrix) {
      const auto weights = operand(slot.offset_bytes(matrix * weight_block_bytes));
      TH_UNROLL
      for (u32 k = 0; k < slot_products; ++k) {
        instructions::multiply<shape.group, kind>(sums.plus(matrix * config.block_tokens),
                                                  weights.advance(k * product_row_bytes),
                                                  tokens.advance(k * product_row_bytes), word, !first || k != 0);
      }
    }
  }

 protected:
  /// A warp's 32 rows are as many outputs.
  static constexpr u32 warp_outputs = warp_eights * 8;

  /// This block's part of a tile's columns.
  static TH_DEVICE u32 block_tokens(const Tile& tile) {
    if constexpr (config.dense) {
      return loaded_tokens(config);
    } else {
      return tile.tile_width / config.blocks;
    }
  }
  static TH_DEVICE u32 first_output(const Tile& tile, u32 member) {
    if constexpr (config.dense) {
      return tile.output;
    } else {
      return (tile.column * config.blocks + member) * block_rows;
    }
  }

  const Params& params_;

 private:
  using Element = typename NumberType<config.operand>::type;
  static constexpr instructions::Kind kind =
      config.operand == Number::e4m3 ? instructions::Kind::f8f6f4 : instructions::Kind::f16;

  template <int rank>
  TH_DEVICE void load_matrices(const pipeline::LoadSlot& slot, const At<rank>& rows) const {
    pipeline::load_box<shape.group>(slot, 0, params_.gate, rows);
    if constexpr (config.matrices == 2) {
      pipeline::load_box<shape.group>(slot, weight_block_bytes, params_.up, rows);
    }
  }

  static TH_DEVICE instructions::Descriptor<Swizzle::b128> operand(Shared<u8> start) {
    return instructions::descriptor<Swizzle::b128>(start, 0, 8 * slot_row_bytes);
  }
};

/// A chunk's sums times the scales of their operands. Rows r and r + 8 of a slab are outputs of two eights.
/// `sum(matrix, slab, word)` is one of them.
template <class Sum, class Weights, class Tokens>
struct ScaledSums {
  const Sum& sum;
  const Weights& weights;
  const Tokens& tokens;

  TH_DEVICE float gate(int group, int eight, int e) const {
    return tokens.scaled(weights.gate.scaled(of_eight(0, group, eight, e), eight), group, e);
  }
  TH_DEVICE float up(int group, int eight, int e) const {
    return tokens.scaled(weights.up.scaled(of_eight(1, group, eight, e), eight), group, e);
  }

 private:
  TH_DEVICE float of_eight(int matrix, int group, int eight, int e) const {
    return sum.matrix[matrix].get(eight / 2, group * 4 + eight % 2 * 2 + e);
  }
};

/// The dense dual GEMM: tiles that the host knows.
template <Config config>
class DenseOperation : public Products<config, DenseParams, DenseTile> {
  using Base = Products<config, DenseParams, DenseTile>;
  using Base::params_;

 public:
  using Base::Base;

  TH_DEVICE u32 tiles() const { return params_.token_tiles * params_.output_tiles; }
  /// Neighbours share their weights.
  TH_DEVICE DenseTile tile(u32 index, u32 member) const {
    const u32 output_tile = index / params_.token_tiles;
    return {(index - output_tile * params_.token_tiles) * config.block_tokens,
            (output_tile * config.blocks + member) * block_rows};
  }
  TH_DEVICE u32 k_steps() const { return params_.k_steps; }

  TH_DEVICE void load_tokens(const pipeline::LoadSlot& slot, const DenseTile& tile, u32 k_step, u32 member) const {
    const i32 first = static_cast<i32>(tile.token + member * loaded_tokens(config));
    pipeline::load_box<Base::shape.group>(slot, weight_bytes(config), params_.tokens,
                                          At{static_cast<i32>(k_step * slot_k(config)), first});
  }

  /// Scales of the block's weights, and of its first tokens.
  struct Ahead {
    WeightScales<config.weight_scaling, warp_eights> gate;
    WeightScales<config.weight_scaling, warp_eights> up;
    TokenScales<config.token_scaling> tokens;
  };
  TH_DEVICE Ahead ahead(const DenseTile& tile, const BlockPlace& place, Shared<u32>) const {
    const u32 output = Base::first_output(tile, place.member) + warp::index() * Base::warp_outputs;
    return {{params_.gate_scales, output, params_.n},
            {params_.up_scales, output, params_.n},
            token_scales(first_token(tile, place))};
  }

  template <class Sums>
  TH_DEVICE void finish(const Sums& sums, const DenseTile& tile, u32, const BlockPlace& place, Shared<u8> staging,
                        const Ahead& ahead) const {
    constexpr u32 tokens = finished_tokens(config);
    const u32 origin = first_token(tile, place);
    TokenScales<config.token_scaling> scales = ahead.tokens;
    // Not unrolled over chunks: each is code enough.
    TH_NO_UNROLL
    for (u32 first = 0; first < tokens; first += staged) {
      if (origin + first < params_.m) {
        const TokenPairs pairs(scales);
        scales = token_scales(origin + first + staged);
        const u32 part = first / staged % 2;
        using Chunk = decltype(sums.template chunk<staged>(first));
        struct Chunks {
          Chunk matrix[2];
        };
        const Chunks chunks{{sums.template chunk<staged>(first), sums.template chunk<staged>(tokens + first)}};
        write_dense<config.output, config.activation, staged, warp_eights>(
            params_, {origin + first, Base::first_output(tile, place.member)},
            staging.offset_bytes(part * (staging_bytes(config) / 2)),
            ScaledSums<Chunks, Ahead, TokenPairs>{chunks, ahead, pairs});
      }
    }
  }

 private:
  static constexpr int staged = dense_chunk_tokens(config);
  using TokenPairs = typename TokenScales<config.token_scaling>::template Pairs<staged>;

  static TH_DEVICE u32 first_token(const DenseTile& tile, const BlockPlace& place) {
    return tile.token + place.half * finished_tokens(config);
  }
  TH_DEVICE TokenScales<config.token_scaling> token_scales(u32 first) const {
    return {params_.token_scales, first, params_.m};
  }
};

/// As Finish asks for sums.
struct Accumulators {
  static constexpr int eights = warp_eights;
  static constexpr int blocks = 1;
  template <class Sums>
  static TH_DEVICE float gate(const Sums& sums, int, int group, int eight, int e) {
    return sums.gate(group, eight, e);
  }
  template <class Sums>
  static TH_DEVICE float up(const Sums& sums, int group, int eight, int e) {
    return sums.up(group, eight, e);
  }
};

/// Groups whose rows only the device knows.
template <Config config>
class GroupedOperation : public Products<config, PlainParams, GroupTile> {
  using Base = Products<config, PlainParams, GroupTile>;
  using Base::params_;

 public:
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr bool inspects = config.gathered;
  static constexpr int accumulators = config.matrices;
  using Base::Base;

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return (params_.k + slot_k(config) - 1) / slot_k(config); }
  TH_DEVICE u32 inspect(const GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<inspects>(params_.groups, flags); }

  /// Tokens beyond the last are zeros. Those of another group behind the tile's are columns that no thread stores.
  TH_DEVICE void load_tokens(const pipeline::LoadSlot& slot, const GroupTile& tile, u32 k_step, u32 member) const {
    const i32 k = static_cast<i32>(k_step * slot_k(config));
    const i32 slot_of_rows = static_cast<i32>(groups().slots != 0 ? tile.group : 0);
    const u32 count = Base::block_tokens(tile);
    pipeline::load_token_part<Base::shape.group>(slot, weight_bytes(config), {params_.few_tokens, params_.many_tokens},
                                                 tile.row + member * count, count,
                                                 [&](u32 row) { return At{k, static_cast<i32>(row), slot_of_rows}; });
  }

  /// Scales of the block's weights.
  struct Ahead {
    WeightScales<config.weight_scaling, warp_eights> gate;
    WeightScales<config.matrices == 2 ? config.weight_scaling : Scaling::none, warp_eights> up;
  };
  TH_DEVICE Ahead ahead(const GroupTile& tile, const BlockPlace& place, Shared<u32>) const {
    const u32 output = Base::first_output(tile, place.member) + warp::index() * Base::warp_outputs;
    const u32 n = params_.finish.n;
    return {{scales_of(params_.gate_scales, tile.group), output, n, params_.gate_scales.row_stride},
            {scales_of(params_.up_scales, tile.group), output, n, params_.up_scales.row_stride}};
  }

  template <class Chunks>
  TH_DEVICE void finish(const Chunks& sums, const GroupTile& tile, u32 first, const BlockPlace& place,
                        Shared<u8> staging, const Ahead& weights) const {
    const Finish<finish_knobs(config), Accumulators, Chunks::columns> finishing(
        params_.finish, {.output = Base::first_output(tile, place.member)});
    GroupTile part = tile;
    part.row += first;
    part.rows -= first;
    const auto ahead = finishing.ahead(part);
    const auto scales = token_scales(part);
    using Pairs = typename TokenScales<config.token_scaling>::template Pairs<Chunks::columns>;
    const Pairs tokens(scales);
    finishing.write(ScaledSums<Chunks, Ahead, Pairs>{sums, weights, tokens}, part, staging, ahead,
                    [](float sum, int, int, int) { return sum; });
  }

 private:
  TH_DEVICE TokenScales<config.token_scaling> token_scales(const GroupTile& tile) const {
    return {token_scales_of(params_, tile), tile.row, tile.row + tile.rows,
            [&](u32 row) { return token_of<config.gathered>(params_, row); }};
  }
};

template <Config config>
using Operation = conditional<config.dense, DenseOperation<config>, GroupedOperation<config>>;

template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), 1)
kernel(TH_GRID_CONSTANT const typename Operation<config>::Params params) {
  pipeline::run_tcgen05(Operation<config>(params));
}

}  // namespace thresher::strategies::gemm::tcgen05
