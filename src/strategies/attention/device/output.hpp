#pragma once
/// Finished rows from fragments to global memory.
#include "strategies/attention/device/row.hpp"
#include "strategies/attention/device/softmax.hpp"

namespace thresher::strategies::attention {

/// The upper lanes exchange their low word for the high word of the lanes `distance` below.
TH_DEVICE void exchange_words(u32& low, u32& high, bool upper, u32 distance) {
  const u32 received = warp::shuffle_xor(upper ? low : high, distance);
  low = upper ? received : low;
  high = upper ? high : received;
}

/// Transposes 4×4 words among the four lanes of a quad: lane c's word j becomes lane j's word c.
TH_DEVICE void transpose_quad(u32& w0, u32& w1, u32& w2, u32& w3) {
  const bool odd = (warp::lane() & 1) != 0;
  const bool upper = (warp::lane() & 2) != 0;
  exchange_words(w0, w1, odd, 1);
  exchange_words(w2, w3, odd, 1);
  exchange_words(w0, w2, upper, 2);
  exchange_words(w1, w3, upper, 2);
}

/// Stores columns [first_column, first_column + columns) of this thread's two rows, 16 bytes at a time where a quad has
/// enough columns. `row[half]` < 0: not stored. All shuffles precede the stores, which not every lane makes.
template <typename Element, int columns>
TH_DEVICE void store_rows(const Params& params, const Sequence& sequence, const i32 (&row)[2], i32 first_column,
                          const Accumulators<columns>& output) {
  constexpr bool wide = columns % 32 == 0;
  u32 word[2][columns / 8];
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    TH_UNROLL
    for (int group = 0; group < columns / 8; ++group) {
      word[half][group] =
          convert::pack<Element>(output.get(group * 4 + half * 2), output.get(group * 4 + half * 2 + 1));
    }
    if constexpr (wide) {
      TH_UNROLL
      for (int group = 0; group < columns / 8; group += 4) {
        transpose_quad(word[half][group], word[half][group + 1], word[half][group + 2], word[half][group + 3]);
      }
    }
  }
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    if (row[half] >= 0) {
      const Global<u16> out = Global<u16>{params.o.data}.offset(
          element_offset(params.o, sequence.batch, sequence.head, sequence.first_query + row[half]) + first_column);
      TH_UNROLL
      for (int group = 0; group < columns / 8; group += wide ? 4 : 1) {
        if constexpr (wide) {
          out.offset(group * 8 + static_cast<i32>(warp::lane() % 4) * 8)
              .template as<Vector<u32, 4>>()
              .store(0, {word[half][group], word[half][group + 1], word[half][group + 2], word[half][group + 3]});
        } else {
          out.offset(group * 8 + fragment_column()).template as<u32>().store(0, word[half][group]);
        }
      }
    }
  }
}

/// Stores the LSE of a quad's two rows, by its first lane.
TH_DEVICE void store_lse(const Params& params, const Sequence& sequence, const i32 (&row)[2], const RowEnd (&end)[2]) {
  if (wants_lse(params) && warp::lane() % 4 == 0) {
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      if (row[half] >= 0) {
        store_lse(params, sequence, row[half], end[half].lse);
      }
    }
  }
}

/// The lanes whose row of each half is stored and holds a NaN.
struct SpoiltLanes {
  u32 of_half[2] = {};
};

/// All lanes of the warp call it.
template <int columns>
TH_DEVICE SpoiltLanes find_spoilt_rows(const i32 (&row)[2], const Accumulators<columns>& output) {
  SpoiltLanes lanes;
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    bool spoilt = false;
    TH_UNROLL
    for (int group = 0; group < columns / 8; ++group) {
      const float first = output.get(group * 4 + half * 2);
      const float second = output.get(group * 4 + half * 2 + 1);
      spoilt = spoilt || first != first || second != second;
    }
    lanes.of_half[half] = warp::ballot(spoilt && row[half] >= 0);
  }
  return lanes;
}

/// Computes rows that hold a NaN again, key by key, where keys were masked inside a block. A value that the row does
/// not see may have spoilt it, since 0·NaN is NaN. Stores only columns [first_column, end_column). All lanes of the
/// warp call it, after they stored the rows.
template <typename Element, typename QueryElement, typename KeyElement, int head_dim, int value_dim>
TH_DEVICE void recompute_rows(const Params& params, const Sequence& sequence, const i32 (&row)[2],
                              const SpoiltLanes& lanes, i32 first_column, i32 end_column) {
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    if (lanes.of_half[half] == 0) {
      continue;
    }
    warp::sync();  // the stores of other lanes to these rows come first
    TH_NO_UNROLL
    for (u32 quad = 0; quad < 8; ++quad) {
      const i32 query = warp::shuffle(row[half], quad * 4);
      if (((lanes.of_half[half] >> (quad * 4)) & 0xFU) != 0) {
        attend_row<Element, QueryElement, KeyElement, head_dim, value_dim>(params, sequence, query, first_column,
                                                                           end_column);
      }
    }
  }
}

}  // namespace thresher::strategies::attention
