#pragma once
/// The products of NVFP4 operands as the tcgen05 skeleton runs them, and their entry point. NVRTC instantiates it per
/// Config for Blackwell, and the host's compiler for the emulator.
#include "machine/numbers.hpp"
#include "machine/tcgen05.hpp"
#include "machine/tma.hpp"
#include "pipeline/grouped/tensor_tokens.hpp"
#include "pipeline/tcgen05_skeleton.hpp"
#include "strategies/gemm/device/dense_output.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/gemm/tcgen05/device/scale_signs.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled {

using namespace machine;
namespace instructions = machine::tcgen05;
using pipeline::BlockPlace;
using pipeline::GroupTile;

/// The parts of a stage, and its products. Its parts are weights, `token_bytes` of tokens, scales of the weights, and
/// scales of `token_groups` groups of 128 tokens. Each block of a pair brings the scales of half of the blocks along K
/// to both.
template <Group group, u32 token_bytes, u32 token_groups>
class Slot {
  static constexpr u32 loaded_blocks = loaded_scale_blocks(static_cast<u32>(group));

 public:
  static constexpr u32 tokens_at = weight_block_bytes;
  static constexpr u32 weight_scales_at = tokens_at + token_bytes;
  static constexpr u32 token_scales_at = weight_scales_at + weight_scale_bytes;
  static constexpr u32 loaded_scale_bytes = token_groups * loaded_blocks * scale_block_bytes;

  /// All of the stage's products into `sums`, which `first` starts anew; `scales` is the stage's set of columns.
  static TH_DEVICE void multiply(Shared<u8> slot, tensor_memory::Columns sums, tensor_memory::Columns scales,
                                 instructions::Instruction word, bool first) {
    const auto weights = instructions::descriptor<Swizzle::b128>(slot, 0, 8 * slot_row_bytes);
    const auto tokens = instructions::descriptor<Swizzle::b128>(slot.offset_bytes(tokens_at), 0, 8 * slot_row_bytes);
    TH_UNROLL
    for (u32 k = 0; k < slot_products; ++k) {
      const auto weight_scales = scales.plus(k * columns_of_product);
      const auto token_scales = weight_scales.plus(scale_block_columns);
      copy_scales(weight_scales, slot, weight_scales_at + k * scale_block_bytes);
      TH_UNROLL
      for (u32 g = 0; g < token_groups; ++g) {
        copy_scales(token_scales.plus(g * scale_block_columns), slot, token_scales_at + token_scale_block(k, g));
      }
      instructions::multiply_scaled<group>(sums, weights.advance(k * product_row_bytes),
                                           tokens.advance(k * product_row_bytes), word, weight_scales, token_scales,
                                           !first || k != 0);
    }
  }

 private:
  static constexpr u32 columns_of_product = (1 + token_groups) * scale_block_columns;

  /// A block loads all groups of its part of the stage's blocks along K.
  static TH_DEVICE constexpr u32 token_scale_block(u32 k, u32 g) {
    return ((k / loaded_blocks * token_groups + g) * loaded_blocks + k % loaded_blocks) * scale_block_bytes;
  }

  static TH_DEVICE void copy_scales(tensor_memory::Columns to, Shared<u8> slot, u32 offset) {
    instructions::copy_scales<group>(to, instructions::scale_block(slot.offset_bytes(offset)));
  }
};

/// A tile of the dense dual GEMM.
struct DenseTile {
  u32 token_tile;
  u32 row_tile;  ///< of this block
};

/// The factors of the accumulators of gate and up.
struct Factors {
  float gate;
  float up;
};

/// The common part of both kinds of tiles: copies of weights and of token scales, and products.
template <Config config, class OfParams, class OfTile>
class Products {
 public:
  using Params = OfParams;
  using Tile = OfTile;
  static constexpr pipeline::TensorShape shape = shape_of(config);

  TH_DEVICE explicit Products(const Params& params) : params_(params) {}

  TH_DEVICE u32 k_steps() const { return params_.k_steps; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.weights);
    tma::prefetch(params_.weight_scales);
    if constexpr (config.dense) {
      tma::prefetch(params_.tokens);
    } else {
      tma::prefetch(params_.few_tokens);
      tma::prefetch(params_.many_tokens);
    }
    tma::prefetch(params_.token_scales);
  }

  TH_DEVICE void multiply(Shared<u8> slot, tensor_memory::Columns sums, tensor_memory::Columns scales, u32 tile_width,
                          bool first) const {
    constexpr instructions::Instruction widest =
        instructions::instruction<instructions::Kind::nvfp4>(block_rows * config.blocks, config.block_tokens);
    const instructions::Instruction word = widest.with_columns(config.dense ? config.block_tokens : tile_width);
    Slot::multiply(slot, sums, scales, word, first);
  }

 protected:
  static constexpr u32 scale_groups = token_scale_groups(config);
  using Slot = block_scaled::Slot<shape.group, token_bytes(config), scale_groups>;

  template <int rank>
  TH_DEVICE void load_weight_block(const pipeline::LoadSlot& slot, const At<rank>& block) const {
    pipeline::load_box<shape.group>(slot, 0, params_.weights, block);
    pipeline::load_box<shape.group>(slot, Slot::weight_scales_at, params_.weight_scales, block);
  }

  /// For a tile whose scales start at the groups of `tile`.
  TH_DEVICE void load_token_scales(const pipeline::LoadSlot& slot, u32 tile, u32 k_step, u32 member) const {
    const i32 k_block = static_cast<i32>(k_step * slot_scale_blocks + member * loaded_scale_blocks(config));
    pipeline::load_box_for_all<shape.group>(slot, Slot::token_scales_at + member * Slot::loaded_scale_bytes,
                                            params_.token_scales,
                                            At{0, k_block, static_cast<i32>(tile * scale_groups)});
  }

  TH_DEVICE Factors factors(u32 slot, u32 group) const {
    const float token = factor(params_.token_factors, slot);
    const float gate = token * factor(params_.gate_factors, group);
    return {gate, config.matrices == 2 ? token * factor(params_.up_factors, group) : gate};
  }

  const Params& params_;

 private:
  static TH_DEVICE float factor(Global<float> values, u32 index) {
    return values.is_null() ? 1.0F : values.load(index);
  }
};

/// A chunk's sums times their factors: gate is row r of the slab, up row r + 8.
template <class Chunk>
struct ScaledChunk {
  const Chunk& chunk;
  const Factors& factors;

  TH_DEVICE float gate(int group, int slab, int e) const { return chunk.get(slab, group * 4 + e) * factors.gate; }
  TH_DEVICE float up(int group, int slab, int e) const { return chunk.get(slab, group * 4 + 2 + e) * factors.up; }
};

/// The dense dual GEMM: tiles that the host knows.
template <Config config>
class DenseOperation : public Products<config, DenseParams, DenseTile> {
  using Base = Products<config, DenseParams, DenseTile>;
  using Base::params_;

 public:
  using Ahead = Factors;
  using Base::Base;

  TH_DEVICE u32 tiles() const { return params_.token_tiles * params_.output_tiles; }
  /// Neighbours share their weights.
  TH_DEVICE DenseTile tile(u32 index, u32 member) const {
    const u32 output_tile = index / params_.token_tiles;
    return {index - output_tile * params_.token_tiles, output_tile * config.blocks + member};
  }

  TH_DEVICE u32 slot_load_bytes(const DenseTile&) const { return slot_bytes(config); }

  /// A row tile beyond the last is zeros.
  TH_DEVICE void load_weights(const pipeline::LoadSlot& slot, const DenseTile& tile, u32 k_step, u32) const {
    Base::load_weight_block(slot, At{0, 0, static_cast<i32>(tile.row_tile * params_.k_steps + k_step)});
  }
  TH_DEVICE void load_tokens(const pipeline::LoadSlot& slot, const DenseTile& tile, u32 k_step, u32 member) const {
    const i32 first = static_cast<i32>(first_token(tile) + member * loaded_tokens(config));
    pipeline::load_box<Base::shape.group>(slot, Base::Slot::tokens_at, params_.tokens,
                                          At{static_cast<i32>(k_step * slot_row_bytes), first});
    Base::load_token_scales(slot, tile.token_tile, k_step, member);
  }

  TH_DEVICE Factors ahead(const DenseTile& tile, const BlockPlace&, Shared<u32> scratch) const {
    const Factors factors = Base::factors(0, 0);
    if constexpr (config.unsigned_scales) {
      if (ScaleSigns<config>(params_).any(tile.token_tile, scratch)) {
        constexpr u32 nan_bits = 0x7FC00000U;
        return {convert::bits_float(nan_bits), convert::bits_float(nan_bits)};
      }
    }
    return factors;
  }

  template <class Sums>
  TH_DEVICE void finish(const Sums& sums, const DenseTile& tile, u32, const BlockPlace& place, Shared<u8> staging,
                        const Factors& factors) const {
    constexpr u32 tokens = finished_tokens(config);
    const u32 origin = first_token(tile) + place.half * tokens;
    const u32 first_output = tile.row_tile * tile_rows_outputs;
    // Not unrolled over chunks: each is code enough.
    TH_NO_UNROLL
    for (u32 first = 0; first < tokens; first += staged) {
      if (origin + first < params_.m) {
        const u32 part = first / staged % 2;
        const auto chunk = sums.template chunk<staged>(first);
        write_dense<config.output, config.activation, staged, pipeline::slabs>(
            params_, {origin + first, first_output}, staging.offset_bytes(part * (staging_bytes(config) / 2)),
            ScaledChunk<decltype(sums.template chunk<staged>(first))>{chunk, factors});
      }
    }
  }

 private:
  static constexpr int staged = dense_chunk_tokens(config);

  static TH_DEVICE u32 first_token(const DenseTile& tile) { return tile.token_tile * config.block_tokens; }
};

/// As Finish asks for sums: gate in row r and up in row r + 8 of a slab; of one matrix both are outputs.
template <int matrices>
struct Slabs {
  static constexpr int eights = matrices == 2 ? 2 : 4;
  static constexpr int blocks = 1;
  template <class Chunks>
  static TH_DEVICE float gate(const Chunks& sums, int, int group, int eight, int e) {
    const auto& chunk = sums.matrix[0];
    return matrices == 2 ? chunk.get(eight, group * 4 + e) : chunk.get(eight / 2, group * 4 + eight % 2 * 2 + e);
  }
  template <class Chunks>
  static TH_DEVICE float up(const Chunks& sums, int group, int eight, int e) {
    return sums.matrix[0].get(eight, group * 4 + 2 + e);
  }
};

/// Groups whose rows only the device knows.
template <Config config>
class GroupedOperation : public Products<config, GroupedParams, GroupTile> {
  using Base = Products<config, GroupedParams, GroupTile>;
  using Base::params_;

 public:
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr bool inspects = config.gathered;
  static constexpr int accumulators = 1;
  using Ahead = Factors;
  using Base::Base;

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 inspect(const GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<inspects>(params_.groups, flags); }

  TH_DEVICE u32 slot_load_bytes(const GroupTile& tile) const {
    return weight_block_bytes + weight_scale_bytes + token_scale_bytes(config) +
           tile.tile_width / config.blocks * slot_row_bytes;
  }

  /// A row tile beyond the expert's last is zeros.
  TH_DEVICE void load_weights(const pipeline::LoadSlot& slot, const GroupTile& tile, u32 k_step, u32 member) const {
    const u32 row_tile = tile.column * config.blocks + member;
    Base::load_weight_block(
        slot, At{0, 0, static_cast<i32>(row_tile * params_.k_steps + k_step), static_cast<i32>(tile.group)});
  }

  /// This block's part of the tile's columns. Rows behind the tile's are another's, or zeros behind the last.
  TH_DEVICE void load_tokens(const pipeline::LoadSlot& slot, const GroupTile& tile, u32 k_step, u32 member) const {
    const u32 count = tile.tile_width / config.blocks;
    const u32 row = tile.row + (has_slots() ? tile.group * groups().rows : 0) + member * count;
    const i32 along_k = static_cast<i32>(k_step * slot_row_bytes);
    pipeline::load_token_part<Base::shape.group>(slot, Base::Slot::tokens_at, {params_.few_tokens, params_.many_tokens},
                                                 row, count, [&](u32 at) { return At{along_k, static_cast<i32>(at)}; });
    Base::load_token_scales(slot, tile.row_tile, k_step, member);
  }

  TH_DEVICE Factors ahead(const GroupTile& tile, const BlockPlace&, Shared<u32>) const {
    return Base::factors(has_slots() ? tile.group : 0, tile.group);
  }

  template <class Chunks>
  TH_DEVICE void finish(const Chunks& sums, const GroupTile& tile, u32 first, const BlockPlace& place,
                        Shared<u8> staging, const Factors& factors) const {
    using Finishing = Finish<finish_knobs(config), Slabs<config.matrices>, Chunks::columns>;
    const Finishing finishing(params_.finish,
                              {.output = (tile.column * config.blocks + place.member) * block_outputs(config)});
    GroupTile part = tile;
    part.row += first;
    part.rows -= first;
    finishing.write(sums, part, staging, finishing.ahead(part), [&](float sum, int matrix, int, int) {
      return sum * (config.matrices == 2 && matrix == 1 ? factors.up : factors.gate);
    });
  }

 private:
  TH_DEVICE bool has_slots() const { return groups().slots != 0; }
};

template <Config config>
using Operation = conditional<config.dense, DenseOperation<config>, GroupedOperation<config>>;

template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), 1)
kernel(TH_GRID_CONSTANT const typename Operation<config>::Params params) {
  pipeline::run_tcgen05(Operation<config>(params));
}

}  // namespace thresher::strategies::gemm::tcgen05::block_scaled
