#pragma once
/// Outputs in FP8 of sums whose rows are outputs and whose columns are tokens. A warpgroup has 64 outputs of a block of
/// 128, the one beside it the others: both look at what the other found before either rounds.
///
/// Up to 32 tokens take these steps, in this order. All that share the staging have read what was there. Each warp
/// writes what it found, and all have written it. FP8 values are staged, and the warpgroup has staged them. A thread
/// stores 16 bytes of a row.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "pipeline/byte_transpose.hpp"
#include "pipeline/output.hpp"
#include "strategies/gemm/device/quantize.hpp"

namespace thresher::strategies::gemm {

/// Where the outputs of one warpgroup go.
struct QuantizedPlace {
  pipeline::OutputMatrix<E4M3> matrix;
  u32 slot = 0;
  u32 row = 0;     ///< of the first token
  u32 output = 0;  ///< the warpgroup's first
  u32 warpgroup = 0;
};

/// `tokens` of them, at most `staged_tokens`. `staging` is the warpgroup's; that of the other one of a pair lies beside
/// it, the even one's first.
template <Scaling scaling, u32 tokens>
class QuantizedOutputColumns {
  static constexpr int groups = tokens / 8;
  static constexpr u32 warps = 4;

 public:
  /// `value(group, eight)` are outputs lane/4 of the eight for the tokens 8·group + 2(lane%4) and + 1.
  template <class Value, class Stored>
  static TH_DEVICE void write(const OutputScaleParams& params, const QuantizedPlace& place, Shared<u8> staging,
                              const Value& value, const Stored& is_stored) {
    float values[2][groups][2];
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int eight = 0; eight < 2; ++eight) {
        const Vector<float, 2> pair = value(group, eight);
        values[eight][group][0] = pair.at[0];
        values[eight][group][1] = pair.at[1];
      }
    }
    if constexpr (scaling == Scaling::block) {
      named_barrier::sync(pair_barrier(place), 256);
      leave_largest(largest_of_warps(staging), values);
      named_barrier::sync(pair_barrier(place), 256);
      const OutputScale scale = found_scale(params, place, staging);
      store_scales(params, place, scale.scale, is_stored);
      TH_UNROLL
      for (int group = 0; group < groups; ++group) {
        TH_UNROLL
        for (int e = 0; e < 2; ++e) {
          multiply(values, group, e, warp::shuffle(scale.inverse, token_of(group, e)));
        }
      }
    } else {
      named_barrier::sync(1 + place.warpgroup, 128);
      const float inverse = given_inverse(params, place.slot);
      TH_UNROLL
      for (int group = 0; group < groups; ++group) {
        multiply(values, group, 0, inverse);
        multiply(values, group, 1, inverse);
      }
    }
    stage(staging, values);
    named_barrier::sync(1 + place.warpgroup, 128);
    store(place, staging, is_stored);
  }

 private:
  using Values = float (&)[2][groups][2];
  using Words = Vector<u32, 4>;

  static TH_DEVICE u32 thread() { return launch::thread_index() % 128; }
  static TH_DEVICE u32 pair_barrier(const QuantizedPlace& place) { return 8 + place.warpgroup / 2; }
  static TH_DEVICE u32 token_of(int group, int e) { return static_cast<u32>(group * 8 + e) + warp::lane() % 4 * 2; }
  /// Behind the codes: of each warp the largest of each token.
  static TH_DEVICE Shared<float> largest_of_warps(Shared<u8> staging) {
    return staging.offset_bytes(staged_code_bytes).template as<float>();
  }

  static TH_DEVICE void multiply(Values values, int group, int e, float inverse) {
    values[0][group][e] *= inverse;
    values[1][group][e] *= inverse;
  }

  static TH_DEVICE void leave_largest(Shared<float> largest, Values values) {
    const u32 lane = warp::lane();
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int e = 0; e < 2; ++e) {
        float amax = math::max(math::abs(values[0][group][e]), math::abs(values[1][group][e]));
        TH_UNROLL
        for (u32 mask = 4; mask < 32; mask *= 2) {
          amax = math::max(amax, warp::shuffle_xor(amax, mask));
        }
        if (lane < 4) {
          largest.store(thread() / 32 * staged_tokens + token_of(group, e), amax);
        }
      }
    }
  }

  /// Lane l has that of token l.
  static TH_DEVICE OutputScale found_scale(const OutputScaleParams& params, const QuantizedPlace& place,
                                           Shared<u8> staging) {
    constexpr u32 bytes = finish_staging_bytes(Number::e4m3, 2);
    const Shared<u8> even = place.warpgroup % 2 == 0 ? staging : Shared<u8>{staging.address - bytes};
    float amax = 0;
    if (warp::lane() < tokens) {
      TH_UNROLL
      for (u32 of = 0; of < 2; ++of) {
        TH_UNROLL
        for (u32 warp_of = 0; warp_of < warps; ++warp_of) {
          amax = math::max(
              amax, largest_of_warps(even.offset_bytes(of * bytes)).load(warp_of * staged_tokens + warp::lane()));
        }
      }
    }
    return scale_for(params, amax);
  }

  /// By the first warp of the even one.
  template <class Stored>
  static TH_DEVICE void store_scales(const OutputScaleParams& params, const QuantizedPlace& place, float scale,
                                     const Stored& is_stored) {
    const u32 row = place.row + warp::lane();
    if (place.warpgroup % 2 == 0 && thread() < tokens && row < place.matrix.rows &&
        place.output < place.matrix.columns && is_stored(row)) {
      store_scale(params, place.slot, row, place.output, scale);
    }
  }

  /// Rows of tokens. Four lanes with four outputs each make words of four outputs.
  static TH_DEVICE void stage(Shared<u8> staging, Values values) {
    const u32 lane = warp::lane();
    constexpr int at_once = groups >= 2 ? 2 : 1;
    TH_UNROLL
    for (int eight = 0; eight < 2; ++eight) {
      TH_UNROLL
      for (int group = 0; group < groups; group += at_once) {
        const u32 low = convert::floats_to_e4m3x2(values[eight][group][0], values[eight][group][1]);
        const u32 high = at_once == 1 ? 0
                                      : convert::floats_to_e4m3x2(values[eight][group + at_once - 1][0],
                                                                  values[eight][group + at_once - 1][1]);
        const u32 word = pipeline::transpose_bytes_of_rows(low | high << 16, lane);
        const u32 own = lane / 4 % 4;
        if (at_once == 2 || own < 2) {
          const u32 token = (group + own / 2) * 8 + lane % 4 * 2 + own % 2;
          staging.offset_bytes(token * staged_code_pitch + thread() / 32 * 16 + eight * 8 + lane / 16 * 4)
              .template as<u32>()
              .store(0, word);
        }
      }
    }
  }

  template <class Stored>
  static TH_DEVICE void store(const QuantizedPlace& place, Shared<u8> staging, const Stored& is_stored) {
    constexpr u32 chunk = 16;
    const u32 token = thread() / 4;
    const u32 output = place.output + thread() % 4 * chunk;
    const u32 row = place.row + token;
    if (token >= tokens || row >= place.matrix.rows || output >= place.matrix.columns || !is_stored(row)) {
      return;
    }
    const auto words =
        staging.offset_bytes(token * staged_code_pitch + thread() % 4 * chunk).template as<Words>().load();
    const Global<E4M3> at = place.matrix.data.offset(static_cast<i64>(row * place.matrix.row_stride + output));
    if (place.matrix.wide != 0) {
      at.template as<Words>().store(0, words);
      return;
    }
    TH_UNROLL
    for (u32 i = 0; i < chunk; ++i) {
      if (output + i < place.matrix.columns) {
        at.store(i, E4M3{static_cast<u8>(words.at[i / 4] >> (i % 4 * 8))});
      }
    }
  }
};

}  // namespace thresher::strategies::gemm
