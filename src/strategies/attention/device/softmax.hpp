#pragma once
/// The two query rows of a thread in a warpgroup's fragments, and their running softmax.
#include "strategies/attention/device/logits.hpp"

namespace thresher::strategies::attention {

/// Half 0 is fragment row 16·warp + lane/4, half 1 the row 8 below. Four neighbouring lanes share a row.
struct RowPair {
  float running_max[2];
  float running_sum[2];  ///< this thread's columns only
  float factor[2];       ///< the last block's factor of the earlier accumulators
};

TH_DEVICE float quad_max(float value) {
  value = math::max(value, warp::shuffle_xor(value, 1));
  return math::max(value, warp::shuffle_xor(value, 2));
}

TH_DEVICE float quad_sum(float value) {
  value += warp::shuffle_xor(value, 1);
  return value + warp::shuffle_xor(value, 2);
}

/// First of this thread's two rows within a warpgroup's 64.
TH_DEVICE i32 fragment_row() { return static_cast<i32>((warp::index() % 4) * 16 + warp::lane() / 4); }

/// First of this thread's columns in each group of 8.
TH_DEVICE i32 fragment_column() { return static_cast<i32>(warp::lane() % 4) * 2; }

TH_DEVICE void start_rows(RowPair& rows) {
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    rows.running_max[half] = -largest_float;
    rows.running_sum[half] = 0.0F;
    rows.factor[half] = 1.0F;
  }
}

/// For general logits: turns dot products, still to be multiplied by `descale`, into exponents. It precedes masking, so
/// that a masked exponent is −Inf whatever the scale.
template <int columns>
TH_DEVICE void to_exponents(const Params& params, Accumulators<columns>& scores, float descale = 1.0F) {
  TH_UNROLL
  for (int i = 0; i < Accumulators<columns>::elements; ++i) {
    scores.set(i, exponent(params, scores.get(i) * descale));
  }
}

/// Sets −Inf for the keys that the row of `half` does not see; `first_key` is the key of column 0.
template <int columns>
TH_DEVICE void mask(const Visible& visible, int half, Accumulators<columns>& scores, i32 first_key) {
  const i32 begin = visible.begin - first_key - fragment_column();
  const u32 count = static_cast<u32>(visible.end - visible.begin);
  TH_UNROLL
  for (int group = 0; group < columns / 8; ++group) {
    TH_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int i = group * 4 + half * 2 + side;
      if (static_cast<u32>(group * 8 + side - begin) >= count) {
        scores.set(i, minus_infinity());
      }
    }
  }
}

/// The largest of this thread's scores of the row of `half`.
template <int columns>
TH_DEVICE float row_max(const Accumulators<columns>& scores, int half) {
  // Two chains, so that the latency of one hides behind the other.
  float even = scores.get(half * 2);
  float odd = scores.get(half * 2 + 1);
  TH_UNROLL
  for (int group = 1; group < columns / 8; ++group) {
    even = math::max(even, scores.get(group * 4 + half * 2));
    odd = math::max(odd, scores.get(group * 4 + half * 2 + 1));
  }
  return math::max(even, odd);
}

/// Groups of 8 columns.
struct Groups {
  int begin;
  int end;
};

/// Scores become weights 2^(score·factor − running_max); returns their sum in this thread.
template <int columns>
TH_DEVICE float exponentiate(Accumulators<columns>& scores, Groups groups, int half, float factor, float running_max) {
  float even = 0.0F;
  float odd = 0.0F;
  TH_UNROLL
  for (int group = groups.begin; group < groups.end; ++group) {
    const int i = group * 4 + half * 2;
    const float first = math::exp2_approx(math::fma(scores.get(i), factor, -running_max));
    const float second = math::exp2_approx(math::fma(scores.get(i + 1), factor, -running_max));
    scores.set(i, first);
    scores.set(i + 1, second);
    even += first;
    odd += second;
  }
  return even + odd;
}

template <int columns>
TH_DEVICE float exponentiate(Accumulators<columns>& scores, int half, float factor, float running_max) {
  return exponentiate(scores, Groups{0, columns / 8}, half, factor, running_max);
}

/// A row's running maximum changes only when the largest exponent weighs more than 2^max, and that weight then becomes
/// 2^min. For most blocks the accumulators need no rescaling.
struct WeightRange {
  float min;
  float max;
};
/// Weights up to 2^8 lose nothing in 16 bits.
inline constexpr WeightRange weights_in_16_bits{0.0F, 8.0F};
/// FP8 reaches from 2^-9 to 448, with all its bits from 2^-6 on. A row's largest weight is always 2^8, which is exact.
/// Where one key outweighs the others, its weight has no error, and theirs have the least.
inline constexpr WeightRange weights_as_codes{8.0F, 8.0F};

/// The maximum and the factor of the row of `half`, for a block of keys more.
template <int columns>
TH_DEVICE void update_maximum(RowPair& rows, const Accumulators<columns>& scores, int half, float factor,
                              WeightRange range) {
  const float largest = finite(quad_max(row_max(scores, half)) * factor);
  const float running_max = largest > rows.running_max[half] + range.max ? largest - range.min : rows.running_max[half];
  rows.factor[half] = math::exp2_approx(rows.running_max[half] - running_max);
  rows.running_max[half] = running_max;
}

/// Behind that, scores become weights, and are added to the row's sum.
template <int columns>
TH_DEVICE void update_sum(RowPair& rows, Accumulators<columns>& scores, int half, float factor) {
  const float weights = exponentiate(scores, half, factor, rows.running_max[half]);
  rows.running_sum[half] = math::fma(rows.running_sum[half], rows.factor[half], weights);
}

/// Adds a block of keys: scores become weights, and the rows' maximum, sum and factor are updated.
template <int columns>
TH_DEVICE void update_softmax(RowPair& rows, Accumulators<columns>& scores, float factor,
                              WeightRange range = weights_in_16_bits) {
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    update_maximum(rows, scores, half, factor, range);
    update_sum(rows, scores, half, factor);
  }
}

/// Weights [64, columns] as the A operand of the product with the values: k-step s covers keys 16s … 16s+15. For FP8 it
/// covers keys 32s … 32s+31, each 16 keys in the order of TransposedTile.
template <typename Element, int columns>
struct Weights {
  static constexpr int keys_of_step = is_same<Element, E4M3> ? 32 : 16;
  wgmma::Fragment step[columns / keys_of_step];
};

/// Four weights in FP8, the first in the lowest byte.
TH_DEVICE u32 pack_codes(float first, float second, float third, float fourth) {
  return convert::floats_to_e4m3x2(first, second) | static_cast<u32>(convert::floats_to_e4m3x2(third, fourth)) << 16;
}

template <int columns>
TH_DEVICE void pack_weights(Weights<E4M3, columns>& weights, const Accumulators<columns>& scores) {
  TH_UNROLL
  for (int step = 0; step < columns / 32; ++step) {
    TH_UNROLL
    for (int word = 0; word < 4; ++word) {
      const int first = (step * 4 + word / 2 * 2) * 4 + word % 2 * 2;
      weights.step[step].word[word] =
          pack_codes(scores.get(first), scores.get(first + 1), scores.get(first + 4), scores.get(first + 5));
    }
  }
}

template <typename Element, int columns>
TH_DEVICE void pack_weights(Weights<Element, columns>& weights, const Accumulators<columns>& scores,
                            Groups groups = {0, columns / 8}) {
  TH_UNROLL
  for (int step = groups.begin / 2; step < groups.end / 2; ++step) {
    TH_UNROLL
    for (int word = 0; word < 4; ++word) {
      weights.step[step].word[word] =
          convert::pack<Element>(scores.get(step * 8 + word * 2), scores.get(step * 8 + word * 2 + 1));
    }
  }
}

template <int columns>
TH_DEVICE void scale_rows(Accumulators<columns>& output, float first, float second) {
  TH_UNROLL
  for (int i = 0; i < Accumulators<columns>::elements; ++i) {
    output.set(i, output.get(i) * (i / 2 % 2 == 0 ? first : second));
  }
}

}  // namespace thresher::strategies::attention
