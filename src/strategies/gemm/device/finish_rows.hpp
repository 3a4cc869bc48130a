#pragma once
/// From finished sums to rows of C as device/finish.hpp, where tokens lie along the rows of the sums and outputs along
/// their columns, gate before up.
#include "pipeline/grouped/directory.hpp"
#include "pipeline/output.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/finish_inputs.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/device/quantize.hpp"

namespace thresher::strategies::gemm {

/// Writes the outputs of `count` tiles of 64 rows and `columns` columns.
template <FinishKnobs knobs, int count, int columns>
class FinishRows {
 public:
  /// This is loaded before the first pipeline stage: the weights of the thread's rows, two of each 64.
  struct Ahead {
    float row_weight[count][2];
  };

  /// `output` is the tile's first.
  TH_DEVICE FinishRows(const FinishParams& params, u32 output) : params_(params), output_(output) {}

  TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const {
    Ahead ahead{};
    if constexpr (knobs.row_weights) {
      const u64 first = tile.group * params_.row_weights_slot_stride + tile.row;
      TH_UNROLL
      for (int t = 0; t < count; ++t) {
        TH_UNROLL
        for (int half = 0; half < 2; ++half) {
          const u32 row = row_of(t, half);
          ahead.row_weight[t][half] = row < tile.rows ? params_.row_weights.load(static_cast<i64>(first + row)) : 0.0F;
        }
      }
    }
    return ahead;
  }

  template <class Sums>
  TH_DEVICE void write(Sums& sums, const pipeline::GroupTile& tile, const Ahead& ahead) const {
    const auto matrix = output_matrix<Result>(params_, tile);
    const auto is_stored = [&](u32 row) { return is_stored_row<knobs.gathered>(params_, row); };
    if constexpr (knobs.output == Number::e4m3) {
      write_quantized(matrix, sums, tile, ahead, is_stored);
    } else {
      pipeline::DirectOutput<Result, count, groups>::write(
          matrix, {tile.row, output_},
          [&](int t, int group, int half) { return outputs(sums, tile.group, t, group, half, ahead); }, is_stored);
    }
  }

 private:
  using Result = typename NumberType<knobs.output>::type;
  static constexpr int groups = columns / 8 / knobs.matrices;

  /// Returns one of the thread's rows, counted from the tile's first.
  static TH_DEVICE u32 row_of(int t, int half) {
    return t * 64 + launch::thread_index() % 128 / 32 * 16 + half * 8 + warp::lane() / 4;
  }

  /// Outputs take the place of their gates; a tile has all of a block's, of each row in four lanes.
  template <class Sums, class Stored>
  TH_DEVICE void write_quantized(const pipeline::OutputMatrix<Result>& matrix, Sums& sums,
                                 const pipeline::GroupTile& tile, const Ahead& ahead, const Stored& is_stored) const {
    float inverse[count][2];
    const float given =
        knobs.output_scaling == Scaling::block ? 1.0F : given_inverse(params_.output_scales, tile.group);
    TH_UNROLL
    for (int t = 0; t < count; ++t) {
      TH_UNROLL
      for (int half = 0; half < 2; ++half) {
        float amax = 0;
        TH_UNROLL
        for (int group = 0; group < groups; ++group) {
          const Vector<float, 2> pair = outputs(sums, tile.group, t, group, half, ahead);
          TH_UNROLL
          for (int e = 0; e < 2; ++e) {
            sums.tile[t].set(group * 4 + half * 2 + e, pair.at[e]);
            amax = math::max(amax, math::abs(pair.at[e]));
          }
        }
        inverse[t][half] = given;
        if constexpr (knobs.output_scaling == Scaling::block) {
          inverse[t][half] = found(matrix, tile, t, half, amax, is_stored);
        }
      }
    }
    pipeline::DirectOutput<Result, count, groups>::write(
        matrix, {tile.row, output_},
        [&](int t, int group, int half) {
          const int i = group * 4 + half * 2;
          return static_cast<u32>(convert::floats_to_e4m3x2(sums.tile[t].get(i) * inverse[t][half],
                                                            sums.tile[t].get(i + 1) * inverse[t][half]));
        },
        is_stored);
  }

  /// From the largest of a lane's outputs of a row to what all of the row are multiplied by.
  template <class Stored>
  TH_DEVICE float found(const pipeline::OutputMatrix<Result>& matrix, const pipeline::GroupTile& tile, int t, int half,
                        float amax, const Stored& is_stored) const {
    static_assert(knobs.output_scaling != Scaling::block || groups * 8 == scale_block);
    amax = math::max(amax, warp::shuffle_xor(amax, 1));
    amax = math::max(amax, warp::shuffle_xor(amax, 2));
    const OutputScale scale = scale_for(params_.output_scales, amax);
    const u32 row = tile.row + row_of(t, half);
    if (warp::lane() % 4 == 0 && row < matrix.rows && is_stored(row)) {
      store_scale(params_.output_scales, tile.group, row, output_, scale.scale);
    }
    return scale.inverse;
  }

  TH_DEVICE float bias(const Biases& biases, u32 group, u32 output) const {
    return output < params_.n ? bias_at(biases, group, output) : 0.0F;
  }

  /// Two neighbouring outputs of one row.
  template <class Sums>
  TH_DEVICE auto outputs(const Sums& sums, u32 expert, int t, int group, int half, const Ahead& ahead) const {
    float result[2];
    TH_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int i = group * 4 + half * 2 + e;
      const u32 output = output_ + group * 8 + warp::lane() % 4 * 2 + e;
      float gate = sums.tile[t].get(i);
      if constexpr (knobs.bias) {
        gate += bias(params_.gate_bias, expert, output);
      }
      result[e] = activate_one<knobs.activation>(gate);
      if constexpr (knobs.matrices == 2) {
        float up = sums.tile[t].get(Sums::elements / 2 + i);
        if constexpr (knobs.bias) {
          up += bias(params_.up_bias, expert, output);
        }
        result[e] = activate<knobs.activation>(gate, up, params_);
      }
      if constexpr (knobs.row_weights) {
        result[e] *= ahead.row_weight[t][half];
      }
    }
    return output_pair<knobs.output>(result);
  }

  const FinishParams& params_;
  u32 output_;
};

}  // namespace thresher::strategies::gemm
