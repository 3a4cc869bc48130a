#pragma once
/// `rows`: one thread for a query row, as one would write it first. The two next steps stage keys and values in shared
/// memory, row by row or in the order of their addresses. The gain of each step is measured.
#include "strategies/attention/device/codes.hpp"
#include "strategies/attention/device/logits.hpp"

namespace thresher::strategies::attention {

/// Copies rows [first_row, first_row + count) of one head into shared memory. All threads of the block call it.
template <int head_dim, Staging staging>
TH_DEVICE void stage(const Operand& operand, const Sequence& sequence, i32 first_row, i32 count, Shared<u8> tile) {
  constexpr u32 pieces = head_dim / 8;  // of 16 bytes
  const auto piece = [&](u32 row, u32 index) {
    return Global<u16>{operand.data}
        .offset(element_offset(operand, sequence.batch, sequence.kv_head, first_row + static_cast<i32>(row)) +
                static_cast<i32>(index) * 8)
        .template as<Vector<u32, 4>>()
        .load();
  };
  const auto out = tile.as<Vector<u32, 4>>();
  const u32 rows = static_cast<u32>(count);
  if constexpr (staging == Staging::by_row) {  // neighbouring threads read addresses a row apart
    const u32 row = launch::thread_index();
    TH_NO_UNROLL
    for (u32 index = 0; index < pieces && row < rows; ++index) {
      out.store(row * pieces + index, piece(row, index));
    }
  } else {  // neighbouring threads read neighbouring addresses
    TH_NO_UNROLL
    for (u32 i = launch::thread_index(); i < rows * pieces; i += row_threads) {
      out.store(i, piece(i / pieces, i % pieces));
    }
  }
}

/// The source of a thread's keys or values.
template <int head_dim, Staging staging>
struct RowSource {
  const Operand& operand;
  const Sequence& sequence;
  Shared<u8> tile;
  i32 first_row;  ///< of the tile

  TH_DEVICE Vector<u32, 4> piece(i32 row, int index) const {
    if constexpr (staging == Staging::none) {
      return Global<u16>{operand.data}
          .offset(element_offset(operand, sequence.batch, sequence.kv_head, row) + index * 8)
          .template as<Vector<u32, 4>>()
          .load();
    } else {
      return tile.as<Vector<u32, 4>>().load(static_cast<u32>((row - first_row) * (head_dim / 8) + index));
    }
  }
};

/// One thread's row: its query, and the average so far.
template <typename Element, int head_dim>
struct Row {
  float q[head_dim];
  float o[head_dim];
  float running_max;
  float sum;

  template <typename Source>
  TH_DEVICE void start(const Source& source, i32 query) {
    TH_UNROLL
    for (int index = 0; index < head_dim / 8; ++index) {
      const Vector<u32, 4> piece = source(query, index);
      TH_UNROLL
      for (int word = 0; word < 4; ++word) {
        q[index * 8 + word * 2] = low_of<Element>(piece.at[word]);
        q[index * 8 + word * 2 + 1] = high_of<Element>(piece.at[word]);
        o[index * 8 + word * 2] = 0.0F;
        o[index * 8 + word * 2 + 1] = 0.0F;
      }
    }
    running_max = -largest_float;
    sum = 0.0F;
  }

  template <typename Source>
  TH_DEVICE float dot(const Source& keys, i32 key) const {
    float even = 0.0F;
    float odd = 0.0F;
    TH_UNROLL
    for (int index = 0; index < head_dim / 8; ++index) {
      const Vector<u32, 4> piece = keys.piece(key, index);
      TH_UNROLL
      for (int word = 0; word < 4; ++word) {
        even = math::fma(q[index * 8 + word * 2], low_of<Element>(piece.at[word]), even);
        odd = math::fma(q[index * 8 + word * 2 + 1], high_of<Element>(piece.at[word]), odd);
      }
    }
    return even + odd;
  }

  template <typename Source>
  TH_DEVICE void add_key(const Source& values, i32 key, float power) {
    const auto [factor, weight] = attention::add_key(running_max, sum, power);
    TH_UNROLL
    for (int index = 0; index < head_dim / 8; ++index) {
      const Vector<u32, 4> piece = values.piece(key, index);
      TH_UNROLL
      for (int word = 0; word < 4; ++word) {
        const int i = index * 8 + word * 2;
        o[i] = math::fma(weight, low_of<Element>(piece.at[word]), o[i] * factor);
        o[i + 1] = math::fma(weight, high_of<Element>(piece.at[word]), o[i + 1] * factor);
      }
    }
  }
};

template <typename Element, int head_dim>
TH_DEVICE void store_row(const Params& params, const Sequence& sequence, i32 query, const Row<Element, head_dim>& row,
                         bool sees) {
  const float factor = sees ? math::reciprocal_approx(row.sum) : 0.0F;
  const Global<u16> out = Global<u16>{params.o.data}.offset(
      element_offset(params.o, sequence.batch, sequence.head, sequence.first_query + query));
  TH_UNROLL
  for (int index = 0; index < head_dim / 8; ++index) {
    Vector<u32, 4> piece;
    TH_UNROLL
    for (int word = 0; word < 4; ++word) {
      const int i = index * 8 + word * 2;
      piece.at[word] = convert::pack<Element>(row.o[i] * factor, row.o[i + 1] * factor);
    }
    out.as<Vector<u32, 4>>().store(index, piece);
  }
  if (wants_lse(params)) {
    store_lse(params, sequence, query, sees ? lse_of(row.running_max, row.sum) : minus_infinity());
  }
}

/// Grid: x query tiles of `row_threads` rows · heads · batch, as work_at numbers them.
template <typename Element, int head_dim, Staging staging>
TH_KERNEL(row_threads, 1)
rows(TH_GRID_CONSTANT const Params params) {
  launch::wait_for_earlier_grids();
  const Work work = work_at(params, static_cast<i32>(launch::block_index().x), row_threads);
  const Sequence& sequence = work.sequence;
  if (work.first_row < 0 || work.first_row >= sequence.queries) {
    return;
  }
  const i32 last_row = least(work.first_row + row_threads, sequence.queries) - 1;
  const i32 query = least(work.first_row + static_cast<i32>(launch::thread_index()), last_row);
  Row<Element, head_dim> row;
  row.start(
      [&](i32 index_of_row, int index) {
        return Global<u16>{params.q.data}
            .offset(element_offset(params.q, sequence.batch, sequence.head, sequence.first_query + index_of_row) +
                    index * 8)
            .template as<Vector<u32, 4>>()
            .load();
      },
      query);
  const Visible visible = visible_keys(params, sequence, query);
  const i32 end = visible_keys(params, sequence, last_row).end;  // of the block: later rows see no fewer
  const Shared<u8> keys = launch::shared_memory();
  const Shared<u8> values = keys.offset_bytes(staged_keys * head_dim * 2);
  TH_NO_UNROLL
  for (i32 first = visible_keys(params, sequence, work.first_row).begin; first < end; first += staged_keys) {
    const i32 count = least(staged_keys, end - first);
    if constexpr (staging != Staging::none) {
      block::sync();
      stage<head_dim, staging>(params.k, sequence, sequence.first_key + first, count, keys);
      stage<head_dim, staging>(params.v, sequence, sequence.first_key + first, count, values);
      block::sync();
    }
    const RowSource<head_dim, staging> key_rows{params.k, sequence, keys, sequence.first_key + first};
    const RowSource<head_dim, staging> value_rows{params.v, sequence, values, sequence.first_key + first};
    TH_NO_UNROLL
    for (i32 key = most(first, visible.begin); key < least(first + count, visible.end); ++key) {
      const float power = exponent(params, row.dot(key_rows, sequence.first_key + key));
      row.add_key(value_rows, sequence.first_key + key, power);
    }
  }
  if (work.first_row + static_cast<i32>(launch::thread_index()) <= last_row) {
    store_row(params, sequence, query, row, visible.begin < visible.end);
  }
}

}  // namespace thresher::strategies::attention
