#pragma once
/// Finished rows from fragments to global memory.
#include "kernels/attention/row.hpp"
#include "kernels/attention/softmax.hpp"

namespace thresher::kernels::attention {

/// Transposes 4×4 words among the four lanes of a quad: lane c's word j becomes lane j's word c.
TH_DEVICE void transpose_quad(u32 (&word)[4]) {
  const bool odd = (warp::lane() & 1) != 0;
  const bool upper = (warp::lane() & 2) != 0;
  TH_UNROLL
  for (int i = 0; i < 4; i += 2) {
    const u32 received = warp::shuffle_xor(odd ? word[i] : word[i + 1], 1);
    (odd ? word[i] : word[i + 1]) = received;
  }
  TH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const u32 received = warp::shuffle_xor(upper ? word[i] : word[i + 2], 2);
    (upper ? word[i] : word[i + 2]) = received;
  }
}

/// Stores columns [first_column, first_column + columns) of this thread's two rows, 16 bytes at a time where a quad has
/// enough columns. `row[half]` < 0: not stored.
template <typename Element, int columns>
TH_DEVICE void store_rows(const Params& params, const Sequence& sequence, const i32 (&row)[2], i32 first_column,
                          const Accumulators<columns>& output) {
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const Global<u16> out = Global<u16>{params.o.data}.offset(
        element_offset(params.o, sequence.batch, sequence.head, sequence.first_query + row[half]) + first_column);
    const auto word_of = [&](int group) {
      return convert::pack<Element>(output.get(group * 4 + half * 2), output.get(group * 4 + half * 2 + 1));
    };
    if constexpr (columns % 32 == 0) {
      TH_UNROLL
      for (int groups = 0; groups < columns / 8; groups += 4) {
        u32 word[4] = {word_of(groups), word_of(groups + 1), word_of(groups + 2), word_of(groups + 3)};
        transpose_quad(word);
        if (row[half] >= 0) {
          out.offset(groups * 8 + static_cast<i32>(warp::lane() % 4) * 8)
              .template as<Vector<u32, 4>>()
              .store(0, {word[0], word[1], word[2], word[3]});
        }
      }
    } else if (row[half] >= 0) {
      TH_UNROLL
      for (int group = 0; group < columns / 8; ++group) {
        out.offset(group * 8 + fragment_column()).template as<u32>().store(0, word_of(group));
      }
    }
  }
}

/// Rows that hold a NaN are computed again, key by key, where keys were masked inside a block: 0·NaN is NaN, so that a
/// value the row does not see may have spoilt it. All lanes of the warp together.
template <typename Element, int head_dim, int columns>
TH_DEVICE void recompute_spoilt_rows(const Params& params, const Sequence& sequence, const i32 (&row)[2],
                                     i32 first_column, const Accumulators<columns>& output) {
  TH_UNROLL
  for (int half = 0; half < 2; ++half) {
    bool spoilt = false;
    TH_UNROLL
    for (int group = 0; group < columns / 8; ++group) {
      const float first = output.get(group * 4 + half * 2);
      const float second = output.get(group * 4 + half * 2 + 1);
      spoilt = spoilt || first != first || second != second;
    }
    u32 lanes = warp::ballot(spoilt && row[half] >= 0);
    if (lanes == 0) {
      continue;
    }
    warp::sync();  // the stores of other lanes to these rows come first
    TH_NO_UNROLL
    for (u32 quad = 0; quad < 8; ++quad) {
      const i32 query = warp::shuffle(row[half], quad * 4);
      if (((lanes >> (quad * 4)) & 0xFU) != 0) {
        attend_row<Element, head_dim>(params, sequence, query, first_column, first_column + columns);
      }
    }
  }
}

}  // namespace thresher::kernels::attention
