#pragma once
/// The scales of FP8 operands as in device/column_scales.hpp, for sums whose rows are tokens and whose columns are
/// outputs. The rows are `count` tiles of 64. The columns are gate before up, or the outputs of one matrix.
#include "machine/numbers.hpp"
#include "strategies/gemm/device/plain_scales.hpp"

namespace thresher::strategies::gemm {

template <ScalingKnobs knobs, int matrices, int count, int columns>
class TokenRowScales {
  static constexpr bool token_blocks = knobs.tokens == Scaling::block;
  static constexpr bool weight_blocks = knobs.weights == Scaling::block;
  /// The two halves of the columns: gate and up, or outputs and those behind them.
  static constexpr int halves = 2;
  static constexpr int half_outputs = columns / halves;
  static_assert(half_outputs <= scale_block, "a half has outputs of two blocks at the most");
  /// A half may begin in one block of 128 outputs and end in the next.
  static constexpr int parts = scale_block % half_outputs == 0 ? 1 : 2;
  static constexpr int pair = 2;  ///< rows of a thread in each tile, 8 apart

 public:
  /// This is loaded before the first pipeline stage.
  struct Ahead {
    float token[count][pair];
    float weight[halves];  ///< of whole matrices
    u32 token_block_at[count][pair];
    u32 weight_block_at[halves][parts];
    u32 output_in_block[halves];  ///< of the first output
  };
  /// The scales of one block along K.
  struct Factors {
    float token[count][pair];
    float weight[halves][parts];
  };

  /// `output` is the tile's first.
  TH_DEVICE TokenRowScales(const PlainParams& params, u32 output) : params_(params), output_(output) {}

  TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const {
    Ahead ahead{};
    TH_UNROLL
    for (int half = 0; half < halves; ++half) {
      if constexpr (knobs.weights == Scaling::tensor) {
        ahead.weight[half] = detail::one_scale(scales_of(weights(half), tile.group));
      }
      ahead.output_in_block[half] = first_output(half) % scale_block;
      TH_UNROLL
      for (int part = 0; part < parts && weight_blocks; ++part) {
        const u32 output = first_output(half) + part * (half_outputs - 1);
        ahead.weight_block_at[half][part] = block_scales_at(params_, weights(half), tile.group, output);
      }
    }
    if constexpr (knobs.tokens != Scaling::none) {
      each_row([&](int t, int eight) {
        const u32 row = t * 64 + launch::thread_index() % 128 / 32 * 16 + eight * 8 + warp::lane() / 4;
        const u32 token = knobs.tokens == Scaling::tensor ? no_token : token_of<knobs.gathered>(params_, tile, row);
        if constexpr (token_blocks) {
          ahead.token_block_at[t][eight] = block_scales_at(params_, tile, token);
        } else {
          ahead.token[t][eight] = token_scale<knobs.tokens>(token_scales_of(params_, tile), token);
        }
      });
    }
    return ahead;
  }

  TH_DEVICE Factors factors(const Ahead& ahead, u32 block) const {
    Factors factors{};
    if constexpr (weight_blocks) {
      TH_UNROLL
      for (int half = 0; half < halves; ++half) {
        TH_UNROLL
        for (int part = 0; part < parts; ++part) {
          factors.weight[half][part] = weights(half).scales.load(ahead.weight_block_at[half][part] + block);
        }
      }
    }
    if constexpr (token_blocks) {
      each_row([&](int t, int eight) {
        factors.token[t][eight] = block_scale(params_, ahead.token_block_at[t][eight], block);
      });
    }
    return factors;
  }

  /// sums += fresh × the factors of its block, in tile t. `fresh` has the tile's columns from the first on: all, or
  /// those of one half.
  template <class Sums, class Fresh>
  TH_DEVICE void promote(Sums& sums, const Fresh& fresh, int first, const Ahead& ahead, const Factors& factors,
                         int t) const {
    const int first_element = first / 2;
    each_output([&](int half, int group, int e) {
      TH_UNROLL
      for (int eight = 0; eight < pair; ++eight) {
        const int i = element(half, group, eight, e);
        if (i < first_element || i >= first_element + Fresh::elements) {
          continue;
        }
        const float added = fresh.get(i - first_element);
        const float sum = sums.get(i);
        if constexpr (token_blocks || weight_blocks) {
          sums.set(i, math::fma(factor(ahead, factors, t, half, group, eight), added, sum));
        } else {
          sums.set(i, sum + added);
        }
      }
    });
  }

  /// Finished sums times the scales of matrices and of rows, the weights' first.
  template <class Sums>
  TH_DEVICE void scale(Sums& sums, const pipeline::GroupTile& tile, const Ahead& ahead) const {
    if constexpr (is_whole(knobs.tokens) || is_whole(knobs.weights)) {
      const HeldScales held = held_scales(tile);
      each_output([&](int half, int group, int e) {
        const float weight = weight_scale(held, ahead, half, group, e);
        each_row([&](int t, int eight) {
          const int i = element(half, group, eight, e);
          float sum = sums.tile[t].get(i);
          if constexpr (is_whole(knobs.weights)) {
            sum *= weight;
          }
          if constexpr (is_whole(knobs.tokens)) {
            sum *= ahead.token[t][eight];
          }
          sums.tile[t].set(i, sum);
        });
      });
    }
  }

 private:
  template <class Work>
  static TH_DEVICE void each_row(const Work& work) {
    TH_UNROLL
    for (int t = 0; t < count; ++t) {
      TH_UNROLL
      for (int eight = 0; eight < pair; ++eight) {
        work(t, eight);
      }
    }
  }
  /// Calls `work(half, group, e)` for each of the thread's outputs of a half, 8·group + 2·(lane % 4) + e.
  template <class Work>
  static TH_DEVICE void each_output(const Work& work) {
    TH_UNROLL
    for (int half = 0; half < halves; ++half) {
      TH_UNROLL
      for (int group = 0; group < half_outputs / 8; ++group) {
        TH_UNROLL
        for (int e = 0; e < 2; ++e) {
          work(half, group, e);
        }
      }
    }
  }
  static TH_DEVICE constexpr int element(int half, int group, int eight, int e) {
    return half * (columns / 4) + group * 4 + eight * 2 + e;
  }

  TH_DEVICE float factor(const Ahead& ahead, const Factors& factors, int t, int half, int group, int eight) const {
    float weight = 1.0F;
    if constexpr (weight_blocks) {
      weight = parts == 2 && is_in_next_block(ahead, half, group) ? factors.weight[half][parts - 1]
                                                                  : factors.weight[half][0];
    }
    if constexpr (token_blocks && weight_blocks) {
      return factors.token[t][eight] * weight;
    } else {
      return token_blocks ? factors.token[t][eight] : weight;
    }
  }
  static TH_DEVICE bool is_in_next_block(const Ahead& ahead, int half, int group) {
    return ahead.output_in_block[half] + group * 8 >= scale_block;
  }

  /// The scales of the rows of weights, 32 of each half by a register: each lane holds those of its number.
  struct HeldScales {
    float of[halves][(half_outputs + 31) / 32];
  };
  TH_DEVICE HeldScales held_scales(const pipeline::GroupTile& tile) const {
    HeldScales held{};
    if constexpr (knobs.weights == Scaling::row) {
      TH_UNROLL
      for (int half = 0; half < halves; ++half) {
        TH_UNROLL
        for (int at = 0; at < (half_outputs + 31) / 32; ++at) {
          const u32 output = first_output(half) + at * 32 + warp::lane();
          held.of[half][at] = output < params_.finish.n
                                  ? scales_of(weights(half), tile.group).load(output * weights(half).row_stride)
                                  : 0.0F;
        }
      }
    }
    return held;
  }
  TH_DEVICE float weight_scale(const HeldScales& held, const Ahead& ahead, int half, int group, int e) const {
    if constexpr (knobs.weights == Scaling::row) {
      return warp::shuffle(held.of[half][group / 4], group % 4 * 8 + warp::lane() % 4 * 2 + e);
    } else {
      return ahead.weight[half];
    }
  }
  TH_DEVICE const WeightScaleParams& weights(int half) const {
    return matrices == 2 && half == 1 ? params_.up_scales : params_.gate_scales;
  }
  TH_DEVICE u32 first_output(int half) const { return output_ + (matrices == 2 ? 0 : half * half_outputs); }

  const PlainParams& params_;
  u32 output_;
};

}  // namespace thresher::strategies::gemm
