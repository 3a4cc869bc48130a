#pragma once
/// From finished sums to rows of C: factors, biases, the activation, row weights, one rounding; and of each tile only
/// the rows that its group owns. Outputs lie along the rows of the sums, tokens along their columns.
#include "machine/named_barrier.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/output.hpp"
#include "pipeline/transposed_output.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/finish_inputs.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/device/quantize_columns.hpp"

namespace thresher::strategies::gemm {

/// Gate and up in sums of their own; of one matrix the second sums are of outputs `distance` further on.
template <int matrices>
struct TwoTiles {
  static constexpr int eights = 2;
  static constexpr int blocks = matrices == 2 ? 1 : 2;
  template <class Sums>
  static TH_DEVICE float gate(const Sums& sums, int block, int group, int eight, int e) {
    return sums.tile[block].get(group * 4 + eight * 2 + e);
  }
  template <class Sums>
  static TH_DEVICE float up(const Sums& sums, int group, int eight, int e) {
    return sums.tile[1].get(group * 4 + eight * 2 + e);
  }
};

/// Gate in row r and up in row r + 8 of the same sums; of one matrix both are outputs.
template <int matrices>
struct RowPairs {
  static constexpr int eights = matrices == 2 ? 1 : 2;
  static constexpr int blocks = 1;
  template <class Sums>
  static TH_DEVICE float gate(const Sums& sums, int, int group, int eight, int e) {
    return sums.tile[0].get(group * 4 + eight * 2 + e);
  }
  template <class Sums>
  static TH_DEVICE float up(const Sums& sums, int group, int, int e) {
    return sums.tile[0].get(group * 4 + 2 + e);
  }
};

/// A warpgroup's outputs of a tile: of each block `eights` · 32 from `output` + block · `distance` on.
struct OutputPlace {
  u32 output = 0;
  u32 distance = 0;
  u32 warpgroup = 0;
};

template <FinishKnobs knobs, class Sources, u32 columns>
class Finish {
 public:
  /// This is loaded before the first pipeline stage. Lane l has the weights of the tile's rows l, l + 32, …
  struct Ahead {
    float gate_bias[Sources::blocks][Sources::eights];
    float up_bias[Sources::eights];
    float row_weight[(columns + 31) / 32];
  };

  TH_DEVICE Finish(const FinishParams& params, const OutputPlace& place) : params_(params), place_(place) {}

  TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const {
    Ahead ahead{};
    if constexpr (knobs.bias) {
      TH_UNROLL
      for (int eight = 0; eight < Sources::eights; ++eight) {
        TH_UNROLL
        for (int block = 0; block < Sources::blocks; ++block) {
          ahead.gate_bias[block][eight] = bias(params_.gate_bias, tile.group, block, eight);
        }
        if constexpr (knobs.matrices == 2) {
          ahead.up_bias[eight] = bias(params_.up_bias, tile.group, 0, eight);
        }
      }
    }
    if constexpr (knobs.row_weights) {
      const u64 first = tile.group * params_.row_weights_slot_stride + tile.row;
      TH_UNROLL
      for (u32 i = 0; i < (columns + 31) / 32; ++i) {
        const u32 row = i * 32 + warp::lane();
        ahead.row_weight[i] = row < tile.rows ? params_.row_weights.load(static_cast<i64>(first + row)) : 0.0F;
      }
    }
    return ahead;
  }

  /// `scaled(sum, row, group, e)` is the product that a sum stands for, of token 2(lane%4) + e of the group of 8. Row 0
  /// is gate and row 1 is up. With one matrix they are the first and the second eight.
  template <class Sums, class Scaled>
  TH_DEVICE void write(const Sums& sums, const pipeline::GroupTile& tile, Shared<u8> staging, const Ahead& ahead,
                       const Scaled& scaled) const {
    const auto matrix = output_matrix<Result>(params_, tile);
    const auto is_stored = [&](u32 row) { return is_stored_row<knobs.gathered>(params_, row); };
    TH_UNROLL
    for (int block = 0; block < Sources::blocks; ++block) {
      const u32 output = place_.output + block * place_.distance;
      if constexpr (knobs.output == Number::fp32) {
        pipeline::TransposedFloatOutput<columns, Sources::eights>::write(
            matrix, {tile.row, output},
            [&](int group, int eight) { return outputs(sums, block, group, eight, ahead, scaled); }, is_stored);
      } else {
        constexpr u32 at_once = staged_at_once(columns);
        constexpr u32 rest = columns % at_once;
        const auto value = [&](u32 first) {
          return [&, first](int group, int eight) {
            return outputs(sums, block, group + static_cast<int>(first / 8), eight, ahead, scaled);
          };
        };
        TH_UNROLL
        for (u32 first = 0; first < columns - rest; first += at_once) {
          stage_and_store<at_once>(matrix, tile, first, output, staging, value(first), is_stored);
        }
        if constexpr (rest != 0) {
          stage_and_store<rest>(matrix, tile, columns - rest, output, staging, value(columns - rest), is_stored);
        }
      }
    }
  }

 private:
  using Result = typename NumberType<knobs.output>::type;

  TH_DEVICE float bias(const Biases& biases, u32 group, int block, int eight) const {
    const u32 warp_row = launch::thread_index() % 128 / 32 * Sources::eights + eight;
    const u32 output = place_.output + block * place_.distance + warp_row * 8 + warp::lane() / 4;
    return output < params_.n ? bias_at(biases, group, output) : 0.0F;
  }

  template <u32 tokens, class Value, class Stored>
  TH_DEVICE void stage_and_store(const pipeline::OutputMatrix<Result>& matrix, const pipeline::GroupTile& tile,
                                 u32 first, u32 output, Shared<u8> staging, const Value& value,
                                 const Stored& is_stored) const {
    const pipeline::OutputOrigin origin{tile.row + first, output};
    if constexpr (knobs.output == Number::e4m3) {
      QuantizedOutputColumns<knobs.output_scaling, tokens>::write(
          params_.output_scales, {matrix, tile.group, origin.row, origin.column, place_.warpgroup}, staging, value,
          is_stored);
    } else {
      // All of the warpgroup have read what was staged before.
      named_barrier::sync(1 + place_.warpgroup, 128);
      pipeline::TransposedOutput<Result, static_cast<int>(tokens), Sources::eights>::write(
          matrix, origin, staging, 1 + place_.warpgroup, value, is_stored);
    }
  }

  /// One output for two neighbouring tokens.
  template <class Sums, class Scaled>
  TH_DEVICE auto outputs(const Sums& sums, int block, int group, int eight, const Ahead& ahead,
                         const Scaled& scaled) const {
    float result[2];
    TH_UNROLL
    for (int e = 0; e < 2; ++e) {
      float gate = scaled(Sources::gate(sums, block, group, eight, e), knobs.matrices == 2 ? 0 : eight, group, e);
      if constexpr (knobs.bias) {
        gate += ahead.gate_bias[block][eight];
      }
      result[e] = activate_one<knobs.activation>(gate);
      if constexpr (knobs.matrices == 2) {
        float up = scaled(Sources::up(sums, group, eight, e), 1, group, e);
        if constexpr (knobs.bias) {
          up += ahead.up_bias[eight];
        }
        result[e] = activate<knobs.activation>(gate, up, params_);
      }
      if constexpr (knobs.row_weights) {
        const u32 token = static_cast<u32>(group % 4 * 8 + e) + warp::lane() % 4 * 2;
        result[e] *= warp::shuffle(ahead.row_weight[group / 4], token);
      }
    }
    return output_pair<knobs.output>(result);
  }

  const FinishParams& params_;
  OutputPlace place_;
};

}  // namespace thresher::strategies::gemm
