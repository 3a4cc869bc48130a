#pragma once
/// The grouped GEMMs of NVFP4 operands as the grouped tensor memory skeleton runs them.
#include "machine/numbers.hpp"
#include "machine/tcgen05.hpp"
#include "machine/tma.hpp"
#include "pipeline/grouped/tensor_skeleton.hpp"
#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/dual_gemm/tcgen05/device/slot.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/grouped_gemm/tcgen05/config.hpp"
#include "strategies/grouped_gemm/tcgen05/params.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

using namespace machine;
namespace instructions = machine::tcgen05;

/// Gate in row r and up in row r + 8 of a slab; of one matrix both are outputs.
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

template <Config config>
class Operation {
 public:
  static constexpr pipeline::TensorShape shape = shape_of(config);
  static constexpr pipeline::TileWidths tile_widths = tile_widths_of(config);
  static constexpr bool inspects = config.gathered;
  static constexpr int accumulators = 1;

  TH_DEVICE explicit Operation(const Params& params) : params_(params) {}

  TH_DEVICE const pipeline::Groups& groups() const { return params_.groups.groups; }
  TH_DEVICE u32 k_steps() const { return params_.k_steps; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.weights);
    tma::prefetch(params_.weight_scales);
    tma::prefetch(params_.few_tokens);
    tma::prefetch(params_.many_tokens);
    tma::prefetch(params_.token_scales);
  }

  TH_DEVICE u32 inspect(const pipeline::GroupTile& tile) const { return skipped_rows(params_.finish, tile); }
  TH_DEVICE void report(u32 flags) const { report_status<inspects>(params_.groups, flags); }

  TH_DEVICE u32 slot_load_bytes(const pipeline::GroupTile& tile) const {
    return weights::weight_block_bytes + weights::weight_scale_bytes + token_scale_bytes(config) +
           tile.tile_width / config.blocks * weights::slot_row_bytes;
  }

  /// A row tile beyond the expert's last is zeros.
  TH_DEVICE void load(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step, u32 member) const {
    const u32 row_tile = tile.column * config.blocks + member;
    const At block{0, 0, static_cast<i32>(row_tile * params_.k_steps + k_step), static_cast<i32>(tile.group)};
    pipeline::load_box<shape.group>(slot, 0, params_.weights, block);
    pipeline::load_box<shape.group>(slot, Slot::weight_scales_at, params_.weight_scales, block);
    load_tokens(slot, tile, k_step, member);
    const i32 k_block = static_cast<i32>(k_step * weights::slot_scale_blocks + member * loaded_scale_blocks(config));
    pipeline::load_box_for_all<shape.group>(slot, Slot::token_scales_at + member * Slot::loaded_scale_bytes,
                                            params_.token_scales,
                                            At{0, k_block, static_cast<i32>(tile.row_tile * scale_groups)});
  }

  TH_DEVICE void multiply(Shared<u8> slot, tensor_memory::Columns sums, tensor_memory::Columns scales, u32 tile_width,
                          bool first) const {
    constexpr instructions::Instruction widest =
        instructions::instruction<instructions::Kind::nvfp4>(weights::tile_rows * config.blocks, config.block_tokens);
    const instructions::Instruction word = widest.with_columns(tile_width);
    Slot::multiply(slot, sums, scales, word, first);
  }

  /// What the sums of gate and up are multiplied by.
  struct Ahead {
    float gate;
    float up;
  };
  TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile, u32) const {
    const float token = factor(params_.token_factors, groups().slots != 0 ? tile.group : 0);
    const float gate = token * factor(params_.gate_factors, tile.group);
    return {gate, config.matrices == 2 ? token * factor(params_.up_factors, tile.group) : gate};
  }

  template <class Chunks>
  TH_DEVICE void finish(const Chunks& sums, const pipeline::GroupTile& tile, u32 first, u32 member, Shared<u8> staging,
                        const Ahead& factors) const {
    using Finishing = Finish<finish_knobs(config), Slabs<config.matrices>, Chunks::columns>;
    const Finishing finishing(params_.finish,
                              {.output = (tile.column * config.blocks + member) * block_outputs(config)});
    pipeline::GroupTile part = tile;
    part.row += first;
    part.rows -= first;
    finishing.write(sums, part, staging, finishing.ahead(part), [&](float sum, int matrix, int, int) {
      return sum * (config.matrices == 2 && matrix == 1 ? factors.up : factors.gate);
    });
  }

 private:
  static constexpr u32 scale_groups = token_scale_groups(config);
  using Slot = weights::Slot<shape.group, max_token_bytes(config), scale_groups>;

  /// This block's part of the tile's columns. Rows behind the tile's are another's, or zeros behind the last.
  TH_DEVICE void load_tokens(const pipeline::LoadSlot& slot, const pipeline::GroupTile& tile, u32 k_step,
                             u32 member) const {
    const u32 count = tile.tile_width / config.blocks;
    const u32 row = tile.row + (groups().slots != 0 ? tile.group * groups().rows : 0) + member * count;
    const i32 along_k = static_cast<i32>(k_step * weights::slot_row_bytes);
    pipeline::load_token_part<shape.group>(slot, Slot::tokens_at, {params_.few_tokens, params_.many_tokens}, row, count,
                                           [&](u32 at) { return At{along_k, static_cast<i32>(at)}; });
  }

  static TH_DEVICE float factor(Global<float> values, u32 index) {
    return values.is_null() ? 1.0F : values.load(index);
  }

  const Params& params_;
};

}  // namespace thresher::strategies::grouped_gemm::tcgen05
