#pragma once
/// The dual GEMM of plain operands as the tensor memory skeleton runs it.
#include "machine/numbers.hpp"
#include "machine/tcgen05.hpp"
#include "machine/tma.hpp"
#include "pipeline/output.hpp"
#include "pipeline/tensor_loads.hpp"
#include "pipeline/tensor_operation.hpp"
#include "pipeline/transposed_output.hpp"
#include "strategies/dual_gemm/tcgen05_plain/config.hpp"
#include "strategies/dual_gemm/tcgen05_plain/params.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/device/row_scales.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

using namespace machine;

template <Config config>
class Operation {
 public:
  static constexpr pipeline::TensorShape shape = shape_of(config);
  static constexpr u32 slot_load_bytes = slot_bytes(config);
  using Element = typename NumberType<config.operand>::type;
  using Result = typename NumberType<config.output>::type;

  struct Tile {
    u32 token;
    u32 output;  ///< of this block
    u32 member;  ///< of the pair
  };

  /// A warp's 32 rows are as many outputs.
  static constexpr int eights = 4;
  static constexpr u32 warp_outputs = eights * 8;

  TH_DEVICE explicit Operation(const Params& params) : params_(params) {}

  TH_DEVICE u32 tiles() const { return params_.token_tiles * params_.output_tiles; }
  /// Neighbours share their weights.
  TH_DEVICE Tile tile(u32 index, u32 member) const {
    const u32 output_tile = index / params_.token_tiles;
    return {(index - output_tile * params_.token_tiles) * config.block_tokens,
            (output_tile * config.blocks + member) * block_outputs, member};
  }
  TH_DEVICE u32 k_steps() const { return params_.k_steps; }
  TH_DEVICE Global<u64> profile() const { return params_.profile; }

  TH_DEVICE void prefetch() const {
    tma::prefetch(params_.gate);
    tma::prefetch(params_.up);
    tma::prefetch(params_.tokens);
  }

  /// Nothing that an earlier grid may write: weights.
  TH_DEVICE void load_constant(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step) const {
    const At at{static_cast<i32>(k_step * slot_k(config)), static_cast<i32>(tile.output)};
    pipeline::load_box<shape.group>(slot, 0, params_.gate, at);
    pipeline::load_box<shape.group>(slot, weight_bytes, params_.up, at);
  }
  TH_DEVICE void load_fresh(const pipeline::LoadSlot& slot, const Tile& tile, u32 k_step) const {
    const i32 first = static_cast<i32>(tile.token + tile.member * loaded_tokens(config));
    pipeline::load_box<shape.group>(slot, 2 * weight_bytes, params_.tokens,
                                    At{static_cast<i32>(k_step * slot_k(config)), first});
  }

  /// The gate's sums, and those of the up in the columns behind them.
  TH_DEVICE void multiply(Shared<u8> slot, tensor_memory::Columns sums, tensor_memory::Columns, bool first) const {
    constexpr tcgen05::Instruction word =
        tcgen05::instruction<kind, Element>(block_outputs * config.blocks, config.block_tokens);
    const auto tokens = operand(slot.offset_bytes(2 * weight_bytes));
    TH_UNROLL
    for (u32 matrix = 0; matrix < 2; ++matrix) {
      const auto weights = operand(slot.offset_bytes(matrix * weight_bytes));
      TH_UNROLL
      for (u32 k = 0; k < slot_products; ++k) {
        tcgen05::multiply<shape.group, kind>(sums.plus(matrix * config.block_tokens),
                                             weights.advance(k * product_row_bytes),
                                             tokens.advance(k * product_row_bytes), word, !first || k != 0);
      }
    }
  }

  /// Scales of the block's weights, and of its first tokens.
  struct Ahead {
    WeightScales<config.weight_scaling, eights> gate;
    WeightScales<config.weight_scaling, eights> up;
    TokenScales<config.token_scaling> tokens;
  };
  TH_DEVICE Ahead ahead(const Tile& tile, u32 half, Shared<u32>) const {
    const u32 output = tile.output + warp::index() * warp_outputs;
    return {{params_.gate_scales, output, params_.n},
            {params_.up_scales, output, params_.n},
            token_scales(first_token(tile, half))};
  }

  template <class Sums>
  TH_DEVICE void finish(const Sums& sums, const Tile& tile, u32 half, Shared<u8> staging, const Ahead& ahead) const {
    constexpr u32 tokens = finished_tokens(config);
    const u32 origin = first_token(tile, half);
    TokenScales<config.token_scaling> scales = ahead.tokens;
    // Not unrolled over chunks, to limit the code size.
    TH_NO_UNROLL
    for (u32 first = 0; first < tokens; first += staged_tokens(config)) {
      if (origin + first < params_.m) {
        const TokenPairs pairs(scales);
        scales = token_scales(origin + first + staged_tokens(config));
        const u32 part = first / staged_tokens(config) % 2;
        const auto gate = sums.template chunk<staged_tokens(config)>(first);
        const auto up = sums.template chunk<staged_tokens(config)>(tokens + first);
        const auto value = [&](int group, int eight) { return outputs(gate, up, group, eight, ahead, pairs); };
        write(value, {origin + first, tile.output}, staging.offset_bytes(part * (staging_bytes(config) / 2)));
      }
    }
  }

 private:
  static constexpr tcgen05::Kind kind = config.operand == Number::e4m3 ? tcgen05::Kind::f8f6f4 : tcgen05::Kind::f16;
  using TokenPairs = typename TokenScales<config.token_scaling>::template Pairs<staged_tokens(config)>;

  static TH_DEVICE u32 first_token(const Tile& tile, u32 half) { return tile.token + half * finished_tokens(config); }
  TH_DEVICE TokenScales<config.token_scaling> token_scales(u32 first) const {
    return {params_.token_scales, first, params_.m};
  }

  static TH_DEVICE tcgen05::Descriptor<Swizzle::b128> operand(Shared<u8> start) {
    return tcgen05::descriptor<Swizzle::b128>(start, 0, 8 * slot_row_bytes);
  }

  template <class Value>
  TH_DEVICE void write(const Value& value, pipeline::OutputOrigin origin, Shared<u8> staging) const {
    constexpr int tokens = staged_tokens(config);
    constexpr u32 output_barrier = 1;
    const pipeline::OutputMatrix<Result> matrix{params_.c.template as<Result>(), params_.c_row_stride, params_.m,
                                                params_.n, params_.c_wide};
    if constexpr (config.output == Number::fp32) {
      pipeline::TransposedFloatOutput<tokens, eights>::write(matrix, origin, value);
    } else {
      pipeline::TransposedOutput<Result, tokens, eights>::write(matrix, origin, staging, output_barrier, value);
    }
  }

  /// One output for two neighbouring tokens: rows r and r + 8 of a slab are outputs of two eights.
  template <class Chunk>
  TH_DEVICE auto outputs(const Chunk& gate, const Chunk& up, int group, int eight, const Ahead& ahead,
                         const TokenPairs& tokens) const {
    float result[2];
    TH_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int word = group * 4 + eight % 2 * 2 + e;
      const float gated = tokens.scaled(ahead.gate.scaled(gate.get(eight / 2, word), eight), group, e);
      const float raised = tokens.scaled(ahead.up.scaled(up.get(eight / 2, word), eight), group, e);
      result[e] = dual_gemm::activate<config.activation>(gated, raised, params_);
    }
    if constexpr (config.output == Number::fp32) {
      return Vector<float, 2>{{result[0], result[1]}};
    } else {
      return convert::pack<Result>(result[0], result[1]);
    }
  }

  const Params& params_;
};

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
