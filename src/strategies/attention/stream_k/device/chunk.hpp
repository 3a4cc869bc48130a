#pragma once
/// A consumer warp's work on chunks of keys. Products are of one warp (mma), with keys along M, so that few query rows
/// waste little: S^T = K·Q^T, O^T = V^T·P^T. FP8 keys and values become halves in registers, exactly. Queries in
/// bfloat16 become halves too, after a power of two that scales their row's largest to about one. An element below
/// 2^-14 of the largest then has an error of 2^-25 of the largest.
#include "strategies/attention/device/codes.hpp"
#include "strategies/attention/stream_k/device/copies.hpp"
#include "strategies/attention/stream_k/device/rows.hpp"

namespace thresher::strategies::attention {

template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement>
class StreamKChunks {
  using Warps = StreamKWarps<config>;
  static constexpr bool fp8 = is_same<KeyElement, E4M3>;
  static constexpr bool fp8_queries = is_same<QueryElement, E4M3>;
  /// The products' operands.
  using Multiplied = conditional<fp8, Half, Element>;
  static constexpr int groups = config.rows / 8;
  static constexpr int key_steps = config.head_dim / 16;
  static constexpr int value_steps = config.value_dim / 16;
  static constexpr int steps_at_once = fp8 ? 2 : 1;
  static_assert(config.key_bytes == (fp8 ? 1 : 2));
  using Scores = float[groups][4];
  using Weights = matrix::Tiles<2>[groups];

 public:
  /// Thread t of a warp has, of each group of 8 rows, rows 2(t%4) and +1; of the output the values' columns that
  /// `column` names.
  struct State {
    matrix::Tiles<2> queries[key_steps][groups];
    float output[value_steps][groups][4];
    float running_max[groups][2];  ///< may be less than the largest exponent by `slack`
    float running_sum[groups][2];  ///< of this thread's keys only
    float factor[groups][2];       ///< of dot products
    float descale;                 ///< of dot products with FP8 keys
  };

  TH_DEVICE explicit StreamKChunks(const StreamKParams& params) : params_(params) {}

  TH_DEVICE void load_queries(const StreamKItem& item, State& state) const {
    const Params& call = params_.call;
    const QueryTile tile = item.tile.of_head(Warps::head(warp::index()));
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      const u32 row = static_cast<u32>(group) * 8 + warp::lane() / 4;
      const bool is_there = row < item.rows;
      const u32 known = is_there ? row : 0;
      const auto from = Global<Bits<QueryElement>>{call.q.data}.offset(
          element_offset(call.q, 0, tile.head(params_, known), tile.first_query + tile.query(params_, known)));
      TH_UNROLL
      for (int step = 0; step < key_steps; ++step) {
        state.queries[step][group] = is_there ? query_words(from.offset(step * 16)) : matrix::Tiles<2>{};
      }
    }
    if constexpr (fp8) {
      state.descale = dot_descale<QueryElement, KeyElement>(params_.call, tile.batch, tile.kv_head);
    }
  }

  TH_DEVICE void begin(State& state) const {
    each_row([&](int group, int side) {
      state.running_max[group][side] = -largest_float;
      state.running_sum[group][side] = 0.0F;
      TH_UNROLL
      for (int step = 0; step < value_steps; ++step) {
        state.output[step][group][side] = 0.0F;
        state.output[step][group][side + 2] = 0.0F;
      }
    });
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      set_factors(state, group);
    }
  }

  TH_DEVICE void process_chunk(const StreamKItem& item, State& state, u32 chunk, const StreamKSlot& slot) const {
    const u32 warp = warp::index();
    const i32 first_key = static_cast<i32>(item.first_chunk + chunk) * config.keys() +
                          static_cast<i32>(Warps::place(warp)) * StreamKConfig::keys_per_warp;
    const bool takes_part = first_key < item.seen.end && first_key + StreamKConfig::keys_per_warp > item.seen.begin;
    Scores scores;
    const bool is_whole =
        first_key >= item.seen_by_all.begin && first_key + StreamKConfig::keys_per_warp <= item.seen_by_all.end;
    Weights weights;
    slot.wait_for_keys();
    if (takes_part) {
      score(state, slot.keys, warp, scores);
      if (!is_whole) {
        mask(item, first_key, scores);
      }
      softmax(state, scores, weights);
    }
    slot.wait_for_values();
    if (takes_part) {
      if (is_whole) {
        accumulate<false>(item, state, slot.values, warp, first_key, weights);
      } else {
        accumulate<true>(item, state, slot.values, warp, first_key, weights);
      }
    }
  }

  /// The value's column of this thread's first two outputs of a step; that of the others is `column_distance` further.
  TH_DEVICE static u32 column(int step) {
    const u32 own = warp::lane() / 4;
    return fp8 ? static_cast<u32>(step / 2) * 32 + own * 2 + static_cast<u32>(step % 2)
               : static_cast<u32>(step) * 16 + own;
  }
  static constexpr u32 column_distance = fp8 ? 16 : 8;

  /// Reduces over the lanes that hold keys of the same rows.
  template <typename Combine>
  TH_DEVICE static float over_keys(float value, const Combine& combine) {
    TH_UNROLL
    for (u32 distance = 4; distance < 32; distance *= 2) {
      value = combine(value, warp::shuffle_xor(value, distance));
    }
    return value;
  }

  /// This thread's rows, by group and side.
  template <typename Use>
  TH_DEVICE static void each_row(const Use& use) {
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        use(group, side);
      }
    }
  }

 private:
  /// In the order of the keys' elements: a thread has four neighbouring FP8 values.
  TH_DEVICE static matrix::Tiles<2> query_words(Global<Bits<QueryElement>> from) {
    const i32 own = static_cast<i32>(warp::lane() % 4);
    if constexpr (fp8_queries) {
      const u32 codes = from.offset(own * 4).template as<u32>().load();
      return {{lower_halves(codes), upper_halves(codes)}};
    } else if constexpr (fp8) {
      const auto words = from.offset(own * 4).template as<Vector<u32, 2>>().load();
      return {{words.at[0], words.at[1]}};
    } else {
      return {{from.offset(own * 2).template as<u32>().load(), from.offset(own * 2 + 8).template as<u32>().load()}};
    }
  }

  TH_DEVICE static void set_factors(State& state, int group) {
    if constexpr (fp8) {
      const float factor =
          is_same<Element, BFloat16> && !fp8_queries ? state.descale * to_halves(state, group) : state.descale;
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        state.factor[group][side] = warp::shuffle(factor, (warp::lane() % 4 * 2 + static_cast<u32>(side)) * 4);
      }
    } else {
      state.factor[group][0] = 1.0F;
      state.factor[group][1] = 1.0F;
    }
  }

  /// Scales a group's queries to halves; four neighbouring lanes have a row. Returns the factor that undoes the
  /// scaling.
  TH_DEVICE static float to_halves(State& state, int group) {
    float largest = 0.0F;
    const auto each_word = [&](const auto& use) {
      TH_UNROLL
      for (int step = 0; step < key_steps; ++step) {
        TH_UNROLL
        for (int word = 0; word < 2; ++word) {
          u32& own = state.queries[step][group].word[word];
          use(own, low_of<Element>(own), high_of<Element>(own));
        }
      }
    };
    const auto size = [](float value) { return math::abs(value) <= largest_float ? math::abs(value) : 0.0F; };
    each_word([&](u32&, float low, float high) { largest = math::max(largest, math::max(size(low), size(high))); });
    largest = math::max(largest, warp::shuffle_xor(largest, 1));
    largest = math::max(largest, warp::shuffle_xor(largest, 2));
    const u32 power = static_cast<u32>(clamp(static_cast<i32>(convert::float_bits(largest) >> 23), 1, 253));
    const float inverse = convert::bits_float((254 - power) << 23);
    each_word([&](u32& own, float low, float high) { own = convert::pack<Half>(low * inverse, high * inverse); });
    return convert::bits_float(power << 23);
  }

  TH_DEVICE BoxedTile tile(Shared<u8> memory, u32 row_bytes, u32 warp) const {
    return {memory, row_bytes, box_rows(params_), Warps::heads, Warps::head(warp)};
  }
  TH_DEVICE static u32 first_row(u32 warp) { return Warps::place(warp) * StreamKConfig::keys_per_warp; }

  /// Exponents of 16 keys.
  TH_DEVICE void score(const State& state, Shared<u8> keys, u32 warp, Scores& scores) const {
    const u32 lane = warp::lane();
    const u32 row = first_row(warp) + lane % 16;
    const BoxedTile tile = this->tile(keys, config.key_row_bytes(), warp);
    Scores other;  // a second chain of products
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[group][i] = 0.0F;
        other[group][i] = 0.0F;
      }
    }
    TH_UNROLL
    for (int step = 0; step < key_steps; step += steps_at_once) {
      const u32 at = static_cast<u32>(step / steps_at_once) * 2 + lane / 16;
      multiply_keys(state, matrix::load<4>(tile.chunk(row, at)), step, scores, other);
    }
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[group][i] =
            exponent_of<logits>(params_.call, scores[group][i] + other[group][i], state.factor[group][i % 2]);
      }
    }
  }

  /// Words of FP8 keys are those of two steps.
  TH_DEVICE static void multiply_keys(const State& state, const matrix::Tiles<4>& words, int step, Scores& scores,
                                      Scores& other) {
    if constexpr (fp8) {
      const matrix::Tiles<4> first{{lower_halves(words.word[0]), lower_halves(words.word[1]),
                                    upper_halves(words.word[0]), upper_halves(words.word[1])}};
      const matrix::Tiles<4> second{{lower_halves(words.word[2]), lower_halves(words.word[3]),
                                     upper_halves(words.word[2]), upper_halves(words.word[3])}};
      TH_UNROLL
      for (int group = 0; group < groups; ++group) {
        matrix::multiply<Multiplied>(scores[group], first, state.queries[step][group]);
        matrix::multiply<Multiplied>(other[group], second, state.queries[step + 1][group]);
      }
    } else {
      TH_UNROLL
      for (int group = 0; group < groups; ++group) {
        matrix::multiply<Multiplied>(step % 2 == 0 ? scores[group] : other[group], words, state.queries[step][group]);
      }
    }
  }

  TH_DEVICE void mask(const StreamKItem& item, i32 first_key, Scores& scores) const {
    const u32 lane = warp::lane();
    const i32 key = first_key + static_cast<i32>(lane / 4);
    TH_UNROLL
    for (int group = 0; group < config.rows / 8; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const u32 row = static_cast<u32>(group) * 8 + lane % 4 * 2 + static_cast<u32>(side);
        const Visible visible = item.tile.visible(params_, item.tile.query(params_, row));
        scores[group][side] = key >= visible.begin && key < visible.end ? scores[group][side] : minus_infinity();
        scores[group][side + 2] =
            key + 8 >= visible.begin && key + 8 < visible.end ? scores[group][side + 2] : minus_infinity();
      }
    }
  }

  /// A row's maximum changes only when its largest exponent is further ahead than this, as in `pipelined`.
  static constexpr float slack = 8.0F;

  TH_DEVICE static void softmax(State& state, Scores& scores, Weights& weights) {
    bool is_ahead = false;
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        is_ahead = is_ahead ||
                   math::max(scores[group][side], scores[group][side + 2]) > state.running_max[group][side] + slack;
      }
    }
    if (warp::any(is_ahead)) {
      rescale(state, scores);
    }
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[group][i] = math::exp2_approx(scores[group][i] - state.running_max[group][i % 2]);
        state.running_sum[group][i % 2] += scores[group][i];
      }
      weights[group] = {{matrix::transpose(convert::pack<Multiplied>(scores[group][0], scores[group][1])),
                         matrix::transpose(convert::pack<Multiplied>(scores[group][2], scores[group][3]))}};
    }
  }

  TH_DEVICE static void rescale(State& state, const Scores& scores) {
    each_row([&](int group, int side) {
      const float largest = finite(over_keys(math::max(scores[group][side], scores[group][side + 2]),
                                             [](float a, float b) { return math::max(a, b); }));
      float& running_max = state.running_max[group][side];
      const float next = largest > running_max + slack ? largest : running_max;
      const float factor = math::exp2_approx(running_max - next);
      running_max = next;
      state.running_sum[group][side] *= factor;
      TH_UNROLL
      for (int step = 0; step < value_steps; ++step) {
        state.output[step][group][side] *= factor;
        state.output[step][group][side + 2] *= factor;
      }
    });
  }

  /// Values of masked keys may be uninitialized: `cleans` makes them zeros.
  template <bool cleans>
  TH_DEVICE void accumulate(const StreamKItem& item, State& state, Shared<u8> values, u32 warp, i32 first_key,
                            const Weights& weights) const {
    const u32 lane = warp::lane();
    const u32 row = first_row(warp) + lane % 8 + lane / 16 * 8;
    const BoxedTile tile = this->tile(values, config.value_row_bytes(), warp);
    u32 kept[2] = {};
    if constexpr (cleans) {
      TH_UNROLL
      for (i32 half = 0; half < 2; ++half) {
        const i32 key = first_key + half * 8 + static_cast<i32>(lane % 4) * 2;
        kept[half] = (key >= item.seen.begin && key < item.seen.end ? 0xFFFFU : 0U) |
                     (key + 1 >= item.seen.begin && key + 1 < item.seen.end ? 0xFFFF0000U : 0U);
      }
    }
    TH_UNROLL
    for (int step = 0; step < value_steps; step += steps_at_once) {
      const u32 at = static_cast<u32>(step / steps_at_once) * 2 + lane / 8 % 2;
      matrix::Tiles<4> words = matrix::load_transposed<4>(tile.chunk(row, at));
      if constexpr (cleans) {
        TH_UNROLL
        for (int i = 0; i < 4; ++i) {
          words.word[i] &= kept[i / 2];
        }
      }
      multiply_values(state, words, step, weights);
    }
  }

  /// Words of FP8 values are those of two steps.
  TH_DEVICE static void multiply_values(State& state, const matrix::Tiles<4>& words, int step, const Weights& weights) {
    if constexpr (fp8) {
      matrix::Tiles<4> even;
      matrix::Tiles<4> odd;
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const u32 sorted = bits::permute(words.word[i], 0, 0x3120);
        even.word[i] = lower_halves(sorted);
        odd.word[i] = upper_halves(sorted);
      }
      TH_UNROLL
      for (int group = 0; group < groups; ++group) {
        matrix::multiply<Multiplied>(state.output[step][group], even, weights[group]);
        matrix::multiply<Multiplied>(state.output[step + 1][group], odd, weights[group]);
      }
    } else {
      TH_UNROLL
      for (int group = 0; group < groups; ++group) {
        matrix::multiply<Multiplied>(state.output[step][group], words, weights[group]);
      }
    }
  }

  const StreamKParams& params_;
};

}  // namespace thresher::strategies::attention
