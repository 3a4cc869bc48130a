#pragma once
/// Writes a consumer warpgroup's results to the output matrix: directly from registers, or staged for the TMA.
///
/// The operation gives values in fragment order. `value(tile, group, half)` is the pair of neighbouring outputs that
/// this thread holds in 8-column group `group` of the warpgroup's 64-row tile. Their row is lane/4 (half 0) or lane/4 +
/// 8 (half 1) of its warp's 16.
#include "machine/fence.hpp"
#include "machine/global.hpp"
#include "machine/launch.hpp"
#include "machine/matrix.hpp"
#include "machine/named_barrier.hpp"
#include "machine/numbers.hpp"
#include "machine/tma.hpp"
#include "machine/warp.hpp"
#include "pipeline/shape.hpp"
#include "pipeline/staging.hpp"

namespace thresher::pipeline {

/// A row-major matrix for kernels' stores.
template <typename T>
struct OutputMatrix {
  Global<T> data;
  u64 row_stride = 0;  ///< elements
  u32 rows = 0;
  u32 columns = 0;
  u32 wide =
      0;  ///< 1 when data, row_stride and columns allow 16-byte stores of whole rows (of 16-bit elements and e4m3)
};

/// The origin of a warpgroup's first tile.
struct OutputOrigin {
  u32 row = 0;
  u32 column = 0;
};

/// Stores every row of the matrix.
struct EveryRow {
  TH_DEVICE bool operator()(u32) const { return true; }
};

/// Registers to global memory. A quad of threads first transposes 4×4 words, so that each stores 16 contiguous bytes (8
/// of e4m3). A pair of e4m3 values is the low half of its word.
template <typename T, int tiles, int groups>
class DirectOutput {
 public:
  /// `is_stored(row)` says which rows of the matrix are stored.
  template <class Value, class Stored = EveryRow>
  static TH_DEVICE void write(const OutputMatrix<T>& matrix, OutputOrigin origin, const Value& value,
                              const Stored& is_stored = {}) {
    const u32 lane = warp::lane();
    const u32 warp_row = (launch::thread_index() / 32 % 4) * 16;
    TH_UNROLL
    for (int t = 0; t < tiles; ++t) {
      TH_UNROLL
      for (int half = 0; half < 2; ++half) {
        const u32 row = origin.row + t * 64 + warp_row + half * 8 + lane / 4;
        const bool stores = row < matrix.rows && is_stored(row);
        int group = 0;
        if constexpr (sizeof(T) <= 2) {
          TH_UNROLL
          for (; group + 4 <= groups; group += 4) {
            u32 word[4];
            TH_UNROLL
            for (int g = 0; g < 4; ++g) {
              word[g] = value(t, group + g, half);
            }
            store_four(matrix, row, origin.column + group * 8, word, lane, stores);
          }
        }
        TH_UNROLL
        for (; group < groups; ++group) {
          store_pair(matrix, row, origin.column + group * 8 + lane % 4 * 2, value(t, group, half), stores);
        }
      }
    }
  }

 private:
  static TH_DEVICE void store_four(const OutputMatrix<T>& matrix, u32 row, u32 column, u32 (&word)[4], u32 lane,
                                   bool stores) {
    if (matrix.wide != 0) {
      transpose(word, lane);
      const u32 own = column + lane % 4 * 8;
      if (stores && own < matrix.columns) {
        const Global<T> at = matrix.data.offset(static_cast<i64>(row * matrix.row_stride + own));
        if constexpr (sizeof(T) == 1) {
          at.template as<Vector<u32, 2>>().store(
              0, Vector<u32, 2>{{bits::permute(word[0], word[1], 0x5410U), bits::permute(word[2], word[3], 0x5410U)}});
        } else {
          at.template as<Vector<u32, 4>>().store(0, Vector<u32, 4>{{word[0], word[1], word[2], word[3]}});
        }
      }
    } else {
      TH_UNROLL
      for (int g = 0; g < 4; ++g) {
        store_pair(matrix, row, column + g * 8 + lane % 4 * 2, word[g], stores);
      }
    }
  }

  /// Afterwards thread c of a quad holds the four words of group c.
  static TH_DEVICE void transpose(u32 (&word)[4], u32 lane) {
    exchange(word[0], word[1], 1, lane);
    exchange(word[2], word[3], 1, lane);
    exchange(word[0], word[2], 2, lane);
    exchange(word[1], word[3], 2, lane);
  }
  static TH_DEVICE void exchange(u32& low, u32& high, u32 bit, u32 lane) {
    const bool upper = (lane & bit) != 0;
    const u32 received = warp::shuffle_xor(upper ? low : high, bit);
    const u32 kept = upper ? high : low;
    low = upper ? received : kept;
    high = upper ? kept : received;
  }

  template <class Pair>
  static TH_DEVICE void store_pair(const OutputMatrix<T>& matrix, u32 row, u32 column, const Pair& pair, bool stores) {
    if (!stores) {
      return;
    }
    const Global<T> at = matrix.data.offset(static_cast<i64>(row * matrix.row_stride + column));
    if constexpr (sizeof(T) == 1) {
      if (column < matrix.columns) {
        at.store(0, T{static_cast<u8>(pair)});
      }
      if (column + 1 < matrix.columns) {
        at.store(1, T{static_cast<u8>(pair >> 8)});
      }
    } else if constexpr (sizeof(T) == 2) {
      if (column < matrix.columns) {
        at.store(0, T{static_cast<u16>(pair & 0xFFFFU)});
      }
      if (column + 1 < matrix.columns) {
        at.store(1, T{static_cast<u16>(pair >> 16)});
      }
    } else {
      if (column < matrix.columns) {
        at.store(0, pair.at[0]);
      }
      if (column + 1 < matrix.columns) {
        at.store(1, pair.at[1]);
      }
    }
  }
};

/// Registers to staging memory by stmatrix, then one tensor copy per panel of columns. For 16-bit outputs.
///
/// Order within a warpgroup: the last copy has read the staging; all stmatrix; each thread's proxy fence; the
/// warpgroup's barrier; one thread's copies. `barrier_id` is a named barrier of this warpgroup alone.
template <int tiles, int groups>
class StagedOutput {
 public:
  static constexpr int columns = groups * 8;
  static constexpr int panel_columns = staging_panel_columns(columns);
  static constexpr u32 panel_bytes = 64 * panel_columns * 2;
  static constexpr u32 bytes = tiles * 64 * columns * 2;

  template <class Value>
  static TH_DEVICE void write(const TensorMap& map, Shared<u8> staging, OutputOrigin origin, u32 barrier_id,
                              const Value& value) {
    const u32 thread = launch::thread_index() % 128;
    if (thread == 0) {
      tma::wait_read<0>();
    }
    named_barrier::sync(barrier_id, 128);
    TH_UNROLL
    for (int t = 0; t < tiles; ++t) {
      store_tile(staging.offset_bytes(t * 64 * columns * 2), thread, t, value);
    }
    fence::async_shared();
    named_barrier::sync(barrier_id, 128);
    if (thread == 0) {
      for (int t = 0; t < tiles; ++t) {
        for (int p = 0; p < columns / panel_columns; ++p) {
          tma::store(map, staging.offset_bytes((t * columns / panel_columns + p) * panel_bytes),
                     At{static_cast<i32>(origin.column + p * panel_columns), static_cast<i32>(origin.row + t * 64)});
        }
      }
      tma::commit();
    }
  }

  /// Every thread calls it before it ends: the staging must exist until it has been read.
  static TH_DEVICE void drain() {
    if (launch::thread_index() % 128 == 0) {
      tma::wait_read<0>();
    }
  }

 private:
  /// Four 8×8 tiles at a time: both row halves of two groups of columns. Thread l provides row l%8 (+8 for tiles 1 and
  /// 3) of group l/16.
  template <class Value>
  static TH_DEVICE void store_tile(Shared<u8> staging, u32 thread, int t, const Value& value) {
    const u32 lane = thread % 32;
    const u32 row = thread / 32 * 16 + lane % 16;
    TH_UNROLL
    for (int group = 0; group < groups; group += 2) {
      matrix::Tiles<4> words;
      words.word[0] = value(t, group, 0);
      words.word[1] = value(t, group, 1);
      words.word[2] = group + 1 < groups ? value(t, group + 1, 0) : 0;
      words.word[3] = group + 1 < groups ? value(t, group + 1, 1) : 0;
      const u32 own = group + lane / 16;
      if constexpr (groups % 2 == 0) {
        matrix::store(address(staging, row, own), words);
      } else {
        static_assert(panel_columns == 8);
        const matrix::Tiles<2> first{{words.word[0], words.word[1]}};
        matrix::store(address(staging, row, group), first);
        if (group + 1 < groups) {
          const matrix::Tiles<2> second{{words.word[2], words.word[3]}};
          matrix::store(address(staging, row, group + 1), second);
        }
      }
    }
  }

  /// The address of 8 columns of a row: rows of one panel are a swizzle span apart.
  static TH_DEVICE Shared<u8> address(Shared<u8> staging, u32 row, u32 group) {
    constexpr u32 panel_groups = panel_columns / 8;
    constexpr u32 span = panel_columns * 2;
    const u32 panel = group / panel_groups;
    const u32 chunk = group % panel_groups;
    const u32 linear = row * span;
    const u32 mixed = chunk ^ ((linear >> 7) & (panel_groups - 1));
    return staging.offset_bytes(panel * panel_bytes + linear + mixed * 16);
  }
};

}  // namespace thresher::pipeline
