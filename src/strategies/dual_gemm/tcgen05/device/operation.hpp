#pragma once
/// The dual GEMM of NVFP4 operands as the tensor memory skeleton runs it.
#include "machine/numbers.hpp"
#include "machine/tcgen05.hpp"
#include "machine/tma.hpp"
#include "pipeline/output.hpp"
#include "pipeline/tensor_loads.hpp"
#include "pipeline/tensor_operation.hpp"
#include "pipeline/transposed_output.hpp"
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "strategies/dual_gemm/tcgen05/device/scale_signs.hpp"
#include "strategies/dual_gemm/tcgen05/device/slot.hpp"
#include "strategies/dual_gemm/tcgen05/params.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/number_type.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

using namespace machine;
namespace instructions = machine::tcgen05;

template <Config config>
class Operation {
 public:
  static constexpr pipeline::TensorShape shape = shape_of(config);
  static constexpr u32 slot_load_bytes = slot_bytes(config);
  using Result = typename NumberType<config.output>::type;

  struct Tile {
    u32 token_tile;
    u32 row_tile;  ///< of this block
    u32 member;    ///< of the pair
    TH_DEVICE u32 token() const { return token_tile * config.block_tokens; }
  };

  TH_DEVICE explicit Operation(const Params& params) : params_(params) {}

  TH_DEVICE u32 tiles() const { return params_.token_tiles * params_.output_tiles; }
  /// Neighbours share their weights.
  TH_DEVICE Tile tile(u32 index, u32 member) const {
    const u32 output_tile = index / params_.token_tiles;
    return {index - output_tile * params_.token_tiles, output_tile * config.blocks + member, member};
  }
  TH_DEVICE u32 k_steps() const { return params_.k_steps; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.weights);
    tma::prefetch(params_.weight_scales);
    tma::prefetch(params_.tokens);
    tma::prefetch(params_.token_scales);
  }

  /// Nothing that an earlier grid may write: weights. A row tile beyond the last is zeros.
  TH_DEVICE void load_constant(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step) const {
    const At block{0, 0, static_cast<i32>(tile.row_tile * params_.k_steps + k_step)};
    pipeline::load_box<shape.group>(slot, 0, params_.weights, block);
    pipeline::load_box<shape.group>(slot, Slot::weight_scales_at, params_.weight_scales, block);
  }

  TH_DEVICE void load_fresh(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step) const {
    const i32 first = static_cast<i32>(tile.token() + tile.member * loaded_tokens(config));
    pipeline::load_box<shape.group>(slot, Slot::tokens_at, params_.tokens,
                                    At{static_cast<i32>(k_step * slot_row_bytes), first});
    const i32 k_block = static_cast<i32>(k_step * slot_scale_blocks + tile.member * loaded_scale_blocks(config));
    pipeline::load_box_for_all<shape.group>(slot, Slot::token_scales_at + tile.member * Slot::loaded_scale_bytes,
                                            params_.token_scales,
                                            At{0, k_block, static_cast<i32>(tile.token_tile * groups)});
  }

  TH_DEVICE void multiply(Shared<u8> slot, tensor_memory::Columns sums, tensor_memory::Columns scales,
                          bool first) const {
    constexpr instructions::Instruction word =
        instructions::instruction<instructions::Kind::nvfp4>(tile_rows * config.blocks, config.block_tokens);
    Slot::multiply(slot, sums, scales, word, first);
  }

  /// What the sums are multiplied by.
  struct Ahead {
    float gate;
    float up;
  };
  TH_DEVICE Ahead ahead(const Tile& tile, u32, Shared<u32> scratch) const {
    const float token = scale(params_.token_scale);
    const Ahead scales{token * scale(params_.gate_scale), token * scale(params_.up_scale)};
    if constexpr (config.unsigned_scales) {
      if (ScaleSigns<config>(params_).any(tile.token_tile, scratch)) {
        constexpr u32 nan_bits = 0x7FC00000U;
        return {convert::bits_float(nan_bits), convert::bits_float(nan_bits)};
      }
    }
    return scales;
  }

  template <class Sums>
  TH_DEVICE void finish(const Sums& sums, const Tile& tile, u32 half, Shared<u8> staging, const Ahead& ahead) const {
    constexpr u32 tokens = finished_tokens(config);
    const u32 first_token = tile.token() + half * tokens;
    const u32 first_output = tile.row_tile * tile_rows_outputs;
    // Not unrolled over chunks, to limit the code size.
    TH_NO_UNROLL
    for (u32 first = 0; first < tokens; first += staged_tokens(config)) {
      if (first_token + first < params_.m) {
        const u32 part = first / staged_tokens(config) % 2;
        write(sums.template chunk<staged_tokens(config)>(first), {first_token + first, first_output},
              staging.offset_bytes(part * (staging_bytes(config) / 2)), ahead);
      }
    }
  }

 private:
  static constexpr u32 groups = token_scale_groups(config);
  using Slot = tcgen05::Slot<shape.group, token_bytes(config), groups>;

  static TH_DEVICE float scale(Global<float> value) { return value.is_null() ? 1.0F : value.load(); }

  template <class Chunk>
  TH_DEVICE void write(const Chunk& chunk, pipeline::OutputOrigin origin, Shared<u8> staging,
                       const Ahead& ahead) const {
    constexpr int tokens = staged_tokens(config);
    constexpr u32 output_barrier = 1;
    const auto value = [&](int group, int eight) { return outputs(chunk, group, eight, ahead); };
    const pipeline::OutputMatrix<Result> matrix{params_.c.template as<Result>(), params_.c_row_stride, params_.m,
                                                params_.n, params_.c_wide};
    if constexpr (config.output == Number::fp32) {
      pipeline::TransposedFloatOutput<tokens, pipeline::slabs>::write(matrix, origin, value);
    } else {
      pipeline::TransposedOutput<Result, tokens, pipeline::slabs>::write(matrix, origin, staging, output_barrier,
                                                                         value);
    }
  }

  /// One output for two neighbouring tokens: gate is row r of the slab, up row r + 8.
  template <class Chunk>
  TH_DEVICE auto outputs(const Chunk& chunk, int group, int slab, const Ahead& ahead) const {
    float result[2];
    TH_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float gate = chunk.get(slab, group * 4 + e) * ahead.gate;
      const float up = chunk.get(slab, group * 4 + 2 + e) * ahead.up;
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

}  // namespace thresher::strategies::dual_gemm::tcgen05
