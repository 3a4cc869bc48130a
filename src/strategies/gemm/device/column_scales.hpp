#pragma once
/// The scales of FP8 operands, for sums whose rows are outputs and whose columns are tokens. The sums are two tiles:
/// gate and up, or the outputs of one matrix and those `distance` further on. Scales of whole matrices and of rows
/// multiply finished sums. Scales of blocks multiply what every block of K adds to the sums.
#include "machine/numbers.hpp"
#include "strategies/gemm/device/finish.hpp"
#include "strategies/gemm/device/plain_scales.hpp"

namespace thresher::strategies::gemm {

template <ScalingKnobs knobs, int matrices, u32 columns>
class ColumnScales {
  static constexpr bool token_blocks = knobs.tokens == Scaling::block;
  static constexpr bool weight_blocks = knobs.weights == Scaling::block;
  static constexpr u32 token_words = (columns + 31) / 32;
  /// The one scale of a matrix comes once.
  static constexpr u32 whole_words = knobs.tokens == Scaling::row ? token_words : 1;

 public:
  /// This is loaded before the first pipeline stage. Lane l has the values of the tile's tokens l, l + 32, …
  struct Ahead {
    WeightScales<knobs.weights, 2> weights[2];
    float token[whole_words];
    u32 weight_block_at[2];
    u32 token_block_at[token_blocks ? token_words : 1];
  };
  /// The scales of one block along K, of the lane's tokens.
  struct Factors {
    float weight[2];
    float token[token_blocks ? token_words : 1];
  };
  /// The same of the tokens whose sums the thread has.
  struct Spread {
    float weight[2];
    float token[token_blocks ? columns / 8 : 1][2];
  };

  TH_DEVICE ColumnScales(const PlainParams& params, const OutputPlace& place) : params_(params), place_(place) {}

  TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile) const {
    Ahead ahead{{weights(tile, 0), weights(tile, 1)}, {}, {}, {}};
    if constexpr (weight_blocks) {
      TH_UNROLL
      for (int t = 0; t < 2; ++t) {
        ahead.weight_block_at[t] = block_scales_at(params_, scales(t), tile.group, output(t));
      }
    }
    if constexpr (knobs.tokens == Scaling::tensor) {
      ahead.token[0] = token_scale<knobs.tokens>(token_scales_of(params_, tile), no_token);
    }
    if constexpr (knobs.tokens == Scaling::row || token_blocks) {
      TH_UNROLL
      for (u32 i = 0; i < token_words; ++i) {
        const u32 token = token_of<knobs.gathered>(params_, tile, i * 32 + warp::lane());
        if constexpr (token_blocks) {
          ahead.token_block_at[i] = block_scales_at(params_, tile, token);
        } else {
          ahead.token[i] = token_scale<knobs.tokens>(token_scales_of(params_, tile), token);
        }
      }
    }
    return ahead;
  }

  TH_DEVICE Factors factors(const Ahead& ahead, u32 block) const {
    Factors factors{};
    if constexpr (weight_blocks) {
      TH_UNROLL
      for (int t = 0; t < 2; ++t) {
        factors.weight[t] = scales(t).scales.load(ahead.weight_block_at[t] + block);
      }
    }
    if constexpr (token_blocks) {
      TH_UNROLL
      for (u32 i = 0; i < token_words; ++i) {
        factors.token[i] = block_scale(params_, ahead.token_block_at[i], block);
      }
    }
    return factors;
  }

  TH_DEVICE Spread spread(const Factors& factors) const {
    Spread spread{{factors.weight[0], factors.weight[1]}, {}};
    if constexpr (token_blocks) {
      each_token([&](int group, int e) { spread.token[group][e] = of_token(factors.token, group, e); });
    }
    return spread;
  }

  /// sums += fresh × the factors of its block, in one tile.
  template <class Sums>
  TH_DEVICE void promote(Sums& sums, const Sums& fresh, const Spread& factors, int t) const {
    each_token([&](int group, int e) {
      float factor = weight_blocks ? factors.weight[t] : 1.0F;
      if constexpr (token_blocks) {
        factor = weight_blocks ? factors.token[group][e] * factor : factors.token[group][e];
      }
      TH_UNROLL
      for (int eight = 0; eight < 2; ++eight) {
        const int i = group * 4 + eight * 2 + e;
        const float added = fresh.tile[t].get(i);
        const float sum = sums.tile[t].get(i);
        sums.tile[t].set(i, token_blocks || weight_blocks ? math::fma(factor, added, sum) : sum + added);
      }
    });
  }

  /// Finished sums times the scales of matrices and of rows, the weights' first.
  template <class Sums>
  TH_DEVICE void scale(Sums& sums, const Ahead& ahead) const {
    constexpr bool token_whole = is_whole(knobs.tokens);
    if constexpr (token_whole || is_whole(knobs.weights)) {
      each_token([&](int group, int e) {
        float token = 1.0F;
        if constexpr (token_whole) {
          token = knobs.tokens == Scaling::row ? of_token(ahead.token, group, e) : ahead.token[0];
        }
        TH_UNROLL
        for (int t = 0; t < 2; ++t) {
          TH_UNROLL
          for (int eight = 0; eight < 2; ++eight) {
            const int i = group * 4 + eight * 2 + e;
            const float scaled = ahead.weights[t].scaled(sums.tile[t].get(i), eight);
            sums.tile[t].set(i, token_whole ? scaled * token : scaled);
          }
        }
      });
    }
  }

 private:
  /// Calls `work(group, e)` for each of the thread's tokens, 8·group + 2·(lane % 4) + e.
  template <class Work>
  static TH_DEVICE void each_token(const Work& work) {
    TH_UNROLL
    for (int group = 0; group < static_cast<int>(columns / 8); ++group) {
      TH_UNROLL
      for (int e = 0; e < 2; ++e) {
        work(group, e);
      }
    }
  }
  template <u32 words>
  static TH_DEVICE float of_token(const float (&of_lane)[words], int group, int e) {
    return warp::shuffle(of_lane[group / 4], static_cast<u32>(group % 4 * 8 + e) + warp::lane() % 4 * 2);
  }

  TH_DEVICE const WeightScaleParams& scales(int t) const {
    return matrices == 2 && t == 1 ? params_.up_scales : params_.gate_scales;
  }
  TH_DEVICE u32 output(int t) const { return place_.output + (matrices == 2 ? 0 : t * place_.distance); }
  TH_DEVICE WeightScales<knobs.weights, 2> weights(const pipeline::GroupTile& tile, int t) const {
    const u32 first = output(t) + launch::thread_index() % 128 / 32 * 16;
    return {scales_of(scales(t), tile.group), first, params_.finish.n, scales(t).row_stride};
  }

  const PlainParams& params_;
  OutputPlace place_;
};

}  // namespace thresher::strategies::gemm
