#pragma once
/// The grouped GEMMs of plain operands as the grouped tensor memory skeleton runs them.
#include "machine/tcgen05.hpp"
#include "machine/tma.hpp"
#include "pipeline/grouped/tensor_skeleton.hpp"
#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/gemm/device/plain_scales.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/config.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

using namespace machine;

/// A chunk's sums times the scales of their operands. Rows r and r + 8 of a slab are outputs of two eights.
template <class Chunks, class Weights, class Tokens>
struct ScaledSums {
  const Chunks& sums;
  const Weights& weights;
  const Tokens& tokens;

  TH_DEVICE float gate(int group, int eight, int e) const {
    return tokens.scaled(weights.gate.scaled(sum(0, group, eight, e), eight), group, e);
  }
  TH_DEVICE float up(int group, int eight, int e) const {
    return tokens.scaled(weights.up.scaled(sum(1, group, eight, e), eight), group, e);
  }

 private:
  TH_DEVICE float sum(int matrix, int group, int eight, int e) const {
    return sums.matrix[matrix].get(eight / 2, group * 4 + eight % 2 * 2 + e);
  }
};

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

template <Config config>
class Operation {
 public:
  static constexpr pipeline::TensorShape shape = shape_of(config);
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr bool inspects = config.gathered;
  static constexpr int accumulators = config.matrices;
  using Element = typename NumberType<config.operand>::type;

  TH_DEVICE explicit Operation(const PlainParams& params) : params_(params) {}

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return (params_.k + slot_k(config) - 1) / slot_k(config); }
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
    return weight_bytes(config) + loaded_tokens(tile) * slot_row_bytes;
  }

  /// Rows of weights beyond the expert's last are zeros, as are tokens beyond the last; those of another group behind
  /// the tile's are columns that nobody stores.
  TH_DEVICE void load(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step, u32 member) const {
    const i32 k = static_cast<i32>(k_step * slot_k(config));
    const At rows{k, static_cast<i32>(first_output(tile, member)), static_cast<i32>(tile.group)};
    pipeline::load_box<shape.group>(slot, 0, params_.gate, rows);
    if constexpr (config.matrices == 2) {
      pipeline::load_box<shape.group>(slot, matrix_bytes, params_.up, rows);
    }
    const i32 slot_of_rows = static_cast<i32>(groups().slots != 0 ? tile.group : 0);
    pipeline::load_token_part<shape.group>(slot, weight_bytes(config), {params_.few_tokens, params_.many_tokens},
                                           tile.row + member * loaded_tokens(tile), loaded_tokens(tile),
                                           [&](u32 row) { return At{k, static_cast<i32>(row), slot_of_rows}; });
  }

  /// The up's sums lie in the columns behind the gate's.
  TH_DEVICE void multiply(Shared<u8> slot, tensor_memory::Columns sums, tensor_memory::Columns, u32 tile_width,
                          bool first) const {
    constexpr tcgen05::Instruction widest =
        tcgen05::instruction<kind, Element>(block_outputs * config.blocks, config.block_tokens);
    const tcgen05::Instruction word = widest.with_columns(tile_width);
    const auto tokens = operand(slot.offset_bytes(weight_bytes(config)));
    TH_UNROLL
    for (u32 matrix = 0; matrix < config.matrices; ++matrix) {
      const auto weights = operand(slot.offset_bytes(matrix * matrix_bytes));
      TH_UNROLL
      for (u32 k = 0; k < slot_products; ++k) {
        tcgen05::multiply<shape.group, kind>(sums.plus(matrix * config.block_tokens),
                                             weights.advance(k * product_row_bytes),
                                             tokens.advance(k * product_row_bytes), word, !first || k != 0);
      }
    }
  }

  /// Scales of the block's weights.
  struct Ahead {
    dual_gemm::WeightScales<config.weight_scaling, warp_eights> gate;
    dual_gemm::WeightScales<config.matrices == 2 ? config.weight_scaling : Scaling::none, warp_eights> up;
  };
  TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile, u32 member) const {
    const u32 output = first_output(tile, member) + warp::index() * warp_outputs;
    const u32 n = params_.finish.n;
    return {{scales_of(params_.gate_scales, tile.group), output, n, params_.gate_scales.row_stride},
            {scales_of(params_.up_scales, tile.group), output, n, params_.up_scales.row_stride}};
  }

  template <class Chunks>
  TH_DEVICE void finish(const Chunks& sums, const pipeline::GroupTile& tile, u32 first, u32 member, Shared<u8> staging,
                        const Ahead& weights) const {
    const Finish<finish_knobs(config), Accumulators, Chunks::columns> finishing(params_.finish,
                                                                                {.output = first_output(tile, member)});
    pipeline::GroupTile part = tile;
    part.row += first;
    part.rows -= first;
    const auto ahead = finishing.ahead(part);
    const auto scales = token_scales(part);
    using Pairs = typename dual_gemm::TokenScales<config.token_scaling>::template Pairs<Chunks::columns>;
    const Pairs tokens(scales);
    finishing.write(ScaledSums<Chunks, Ahead, Pairs>{sums, weights, tokens}, part, staging, ahead,
                    [](float sum, int, int, int) { return sum; });
  }

 private:
  static constexpr tcgen05::Kind kind = config.operand == Number::e4m3 ? tcgen05::Kind::f8f6f4 : tcgen05::Kind::f16;
  static constexpr u32 warp_outputs = warp_eights * 8;

  TH_DEVICE dual_gemm::TokenScales<config.token_scaling> token_scales(const pipeline::GroupTile& tile) const {
    return {token_scales_of(params_, tile), tile.row, tile.row + tile.rows,
            [&](u32 row) { return token_of<config.gathered>(params_, row); }};
  }

  /// Of this block: its part of the tile's columns.
  static TH_DEVICE u32 loaded_tokens(const pipeline::GroupTile& tile) { return tile.tile_width / config.blocks; }
  static TH_DEVICE u32 first_output(const pipeline::GroupTile& tile, u32 member) {
    return (tile.column * config.blocks + member) * block_outputs;
  }
  static TH_DEVICE tcgen05::Descriptor<Swizzle::b128> operand(Shared<u8> start) {
    return tcgen05::descriptor<Swizzle::b128>(start, 0, 8 * slot_row_bytes);
  }

  const PlainParams& params_;
};

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
