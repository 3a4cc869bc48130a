#pragma once
/// Writes the results of a warpgroup whose tile has outputs along its rows and tokens along its columns, to a row-major
/// matrix [tokens, outputs].
///
/// A warp's 16 rows are `eights` times 8 outputs. `value(group, eight)` is the packed pair of output lane/4 of that
/// eight for the tokens 8·group + 2(lane%4) and + 1. For `eights` = 1 it may be `value(group)`.
#include "machine/global.hpp"
#include "machine/launch.hpp"
#include "machine/matrix.hpp"
#include "machine/named_barrier.hpp"
#include "machine/warp.hpp"
#include "pipeline/output.hpp"
#include "pipeline/transposed_layout.hpp"

namespace thresher::pipeline {

namespace detail {
template <class Value>
TH_DEVICE auto value_of(const Value& value, int group, int eight) {
  if constexpr (requires { value(group, eight); }) {
    return value(group, eight);
  } else {
    return value(group);
  }
}
}  // namespace detail

/// 16-bit elements, through staging memory: stmatrix transposes, then each thread stores 16 contiguous bytes.
template <typename T, int tokens, int eights = 1>
class TransposedOutput {
 public:
  /// `staging` and `barrier_id` belong to this warpgroup alone; none of its threads may still read the staging.
  /// `is_stored(row)` says which rows of the matrix are stored.
  template <class Value, class Stored = EveryRow>
  static TH_DEVICE void write(const OutputMatrix<T>& matrix, OutputOrigin origin, Shared<u8> staging, u32 barrier_id,
                              const Value& value, const Stored& is_stored = {}) {
    const u32 thread = launch::thread_index() % 128;
    stage(staging, thread, value);
    named_barrier::sync(barrier_id, 128);
    store(matrix, origin, staging, thread, is_stored);
  }

 private:
  static constexpr u32 outputs = warpgroup_outputs * eights;
  static constexpr u32 pitch_bytes = transposed_pitch(outputs);
  static constexpr int groups = tokens / 8;
  static constexpr int at_once = groups % 4 == 0 ? 4 : groups % 2 == 0 ? 2 : 1;
  static constexpr u32 chunk_outputs = 8;
  static constexpr u32 chunks = outputs / chunk_outputs;

  template <class Value>
  static TH_DEVICE void stage(Shared<u8> staging, u32 thread, const Value& value) {
    const u32 lane = thread % 32;
    TH_UNROLL
    for (int eight = 0; eight < eights; ++eight) {
      TH_UNROLL
      for (int group = 0; group < groups; group += at_once) {
        matrix::Tiles<at_once> tiles;
        TH_UNROLL
        for (int g = 0; g < at_once; ++g) {
          tiles.word[g] = detail::value_of(value, group + g, eight);
        }
        const u32 token = group * 8 + lane % (8 * at_once);
        matrix::store_transposed(staging.offset_bytes(token * pitch_bytes + (thread / 32 * eights + eight) * 16),
                                 tiles);
      }
    }
  }

  template <class Stored>
  static TH_DEVICE void store(const OutputMatrix<T>& matrix, OutputOrigin origin, Shared<u8> staging, u32 thread,
                              const Stored& is_stored) {
    constexpr u32 rows_at_once = 128 / chunks;
    TH_UNROLL
    for (u32 first = 0; first < tokens; first += rows_at_once) {
      const u32 token = first + thread / chunks;
      const u32 output = origin.column + thread % chunks * chunk_outputs;
      if (token < tokens && origin.row + token < matrix.rows && output < matrix.columns &&
          is_stored(origin.row + token)) {
        const auto words = staging.offset_bytes(token * pitch_bytes + thread % chunks * 16).template as<Words>().load();
        store_chunk(matrix, origin.row + token, output, words);
      }
    }
  }

  using Words = Vector<u32, 4>;

  static TH_DEVICE void store_chunk(const OutputMatrix<T>& matrix, u32 row, u32 column, const Words& words) {
    const Global<T> at = matrix.data.offset(static_cast<i64>(row * matrix.row_stride + column));
    if (matrix.wide != 0) {
      at.template as<Words>().store(0, words);
      return;
    }
    TH_UNROLL
    for (u32 i = 0; i < chunk_outputs; ++i) {
      if (column + i < matrix.columns) {
        at.store(i, T{static_cast<u16>(words.at[i / 2] >> (i % 2 * 16))});
      }
    }
  }
};

/// float32, directly from registers: eight threads store 32 contiguous bytes.
template <int tokens, int eights = 1>
struct TransposedFloatOutput {
  template <class Value, class Stored = EveryRow>
  static TH_DEVICE void write(const OutputMatrix<float>& matrix, OutputOrigin origin, const Value& value,
                              const Stored& is_stored = {}) {
    const u32 thread = launch::thread_index() % 128;
    const u32 lane = thread % 32;
    TH_UNROLL
    for (int eight = 0; eight < eights; ++eight) {
      const u32 column = origin.column + (thread / 32 * eights + eight) * 8 + lane / 4;
      TH_UNROLL
      for (int group = 0; group < tokens / 8; ++group) {
        const Vector<float, 2> pair = detail::value_of(value, group, eight);
        TH_UNROLL
        for (u32 e = 0; e < 2; ++e) {
          const u32 row = origin.row + group * 8 + lane % 4 * 2 + e;
          if (row < matrix.rows && column < matrix.columns && is_stored(row)) {
            matrix.data.offset(static_cast<i64>(row * matrix.row_stride + column)).store(0, pair.at[e]);
          }
        }
      }
    }
  }
};

}  // namespace thresher::pipeline
