#pragma once
/// From finished sums to rows of C as device/finish.hpp, where tokens lie along the rows of the sums and outputs along
/// their columns, gate before up.
#include "pipeline/grouped/directory.hpp"
#include "pipeline/output.hpp"
#include "strategies/dual_gemm/device/activation.hpp"
#include "strategies/dual_gemm/device/number_type.hpp"
#include "strategies/grouped_gemm/device/finish_inputs.hpp"

namespace thresher::strategies::grouped_gemm {

using dual_gemm::NumberType;

/// Of `count` tiles of 64 rows and `columns` columns.
template <FinishKnobs knobs, int count, int columns>
class FinishRows {
 public:
  /// What memory is asked for before the first slot: the weights of the thread's rows, two of each 64.
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
          const u32 row = t * 64 + launch::thread_index() % 128 / 32 * 16 + half * 8 + warp::lane() / 4;
          ahead.row_weight[t][half] =
              row < tile.rows ? params_.row_weights.load(static_cast<i64>(first + row)) : 0.0F;
        }
      }
    }
    return ahead;
  }

  template <class Sums>
  TH_DEVICE void write(const Sums& sums, const pipeline::GroupTile& tile, const Ahead& ahead) const {
    const pipeline::OutputMatrix<Result> matrix{
        params_.c.template as<Result>().offset(static_cast<i64>(tile.group * params_.slot_stride)), params_.row_stride,
        tile.row + tile.rows, params_.n, params_.wide};
    pipeline::DirectOutput<Result, count, groups>::write(
        matrix, {tile.row, output_},
        [&](int t, int group, int half) { return outputs(sums, tile.group, t, group, half, ahead); },
        [&](u32 row) {
          if constexpr (knobs.gathered) {
            return is_gathered(params_, row);
          } else {
            return true;
          }
        });
  }

 private:
  using Result = typename NumberType<knobs.output>::type;
  static constexpr int groups = columns / 8 / knobs.matrices;

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
      result[e] = gate;
      if constexpr (knobs.matrices == 2) {
        float up = sums.tile[t].get(Sums::elements / 2 + i);
        if constexpr (knobs.bias) {
          up += bias(params_.up_bias, expert, output);
        }
        result[e] = dual_gemm::activate<knobs.activation>(gate, up, params_);
      }
      if constexpr (knobs.row_weights) {
        result[e] *= ahead.row_weight[t][half];
      }
    }
    if constexpr (knobs.output == Number::fp32) {
      return Vector<float, 2>{{result[0], result[1]}};
    } else {
      return convert::pack<Result>(result[0], result[1]);
    }
  }

  const FinishParams& params_;
  u32 output_;
};

}  // namespace thresher::strategies::grouped_gemm
