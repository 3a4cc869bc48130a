#pragma once
/// Rotates the queries and keys of new tokens by their positions (RoPE), and writes keys and values to the rows of
/// pages that slots name. Block (t, y) has every gridDim.y-th share of token t's rows. A thread reads all columns of
/// its pairs before it writes any of them, so rows may be rotated in place.
#include "machine/machine.hpp"
#include "machine/math.hpp"
#include "strategies/append/device/angle.hpp"
#include "strategies/append/params.hpp"

namespace thresher::strategies::append {

template <typename Element>
TH_DEVICE float widened(u16 pattern) {
  return convert::to_float(Element{pattern});
}

template <typename Element>
TH_DEVICE void load_piece(float (&to)[piece_columns], const Global<u16>& from) {
  const auto words = from.template as<Vector<u32, piece_columns / 2>>().load();
  TH_UNROLL
  for (u32 i = 0; i < piece_columns; i += 2) {
    to[i] = widened<Element>(static_cast<u16>(words.at[i / 2] & 0xFFFFU));
    to[i + 1] = widened<Element>(static_cast<u16>(words.at[i / 2] >> 16));
  }
}

template <typename Element>
TH_DEVICE void store_piece(const Global<u16>& to, const float (&values)[piece_columns]) {
  Vector<u32, piece_columns / 2> words;
  TH_UNROLL
  for (u32 i = 0; i < piece_columns; i += 2) {
    words.at[i / 2] = convert::pack<Element>(values[i], values[i + 1]);
  }
  to.template as<Vector<u32, piece_columns / 2>>().store(0, words);
}

template <typename Element>
TH_DEVICE u16 narrowed(float value) {
  return static_cast<u16>(convert::pack<Element>(value, 0.0F) & 0xFFFFU);
}

/// One row of a head: its source and its destinations.
template <typename Element, typename CacheElement>
struct HeadRow {
  static constexpr bool fp8 = is_same<CacheElement, E4M3>;
  Global<u16> from;
  Global<u16> out;   ///< null: not wanted
  Global<u8> cache;  ///< null: no slot
  float descale;

  TH_DEVICE void load(float (&values)[piece_columns], u32 column) const {
    load_piece<Element>(values, from.offset(column));
  }
  TH_DEVICE float load_one(u32 column) const { return widened<Element>(from.load(column)); }

  TH_DEVICE void store(u32 column, const float (&values)[piece_columns]) const {
    if (!out.is_null()) {
      store_piece<Element>(out.offset(column), values);
    }
    if (cache.is_null()) {
      return;
    }
    if constexpr (fp8) {
      Vector<u32, piece_columns / 4> codes;
      TH_UNROLL
      for (u32 i = 0; i < piece_columns; i += 4) {
        codes.at[i / 4] = static_cast<u32>(convert::floats_to_e4m3x2(values[i] / descale, values[i + 1] / descale)) |
                          static_cast<u32>(convert::floats_to_e4m3x2(values[i + 2] / descale, values[i + 3] / descale))
                              << 16;
      }
      cache.offset(column).template as<Vector<u32, piece_columns / 4>>().store(0, codes);
    } else {
      store_piece<Element>(cache.template as<u16>().offset(column), values);
    }
  }
  TH_DEVICE void store_one(u32 column, float value) const {
    if (!out.is_null()) {
      out.store(column, narrowed<Element>(value));
    }
    if (cache.is_null()) {
      return;
    }
    if constexpr (fp8) {
      cache.store(column, static_cast<u8>(convert::floats_to_e4m3x2(value / descale, 0.0F) & 0xFFU));
    } else {
      cache.template as<u16>().store(column, narrowed<Element>(value));
    }
  }
};

template <typename Element, typename CacheElement, Turn turn>
class Append {
 public:
  using Row = HeadRow<Element, CacheElement>;

  TH_DEVICE Append(const AppendParams& params, u32 token)
      : params_(params), token_(token), slot_(number_of(params.slots)), turns_(launch::shared_memory().as<Angle>()) {}

  /// All threads of the block call it, and it synchronizes them.
  TH_DEVICE void prepare() const {
    if constexpr (turn == Turn::none) {
      return;
    }
    const i64 named = number_of(params_.positions);
    const i64 position = named < 0 ? 0 : named > params_.last_position ? params_.last_position : named;
    const u32 pairs = params_.rotary_dim / 2;
    TH_NO_UNROLL
    for (u32 pair = launch::thread_index(); pair < pairs; pair += threads) {
      turns_.store(pair, params_.table != 0 ? angle_in_table(position, pair)
                                            : angle_of(position, math::exp(params_.log_step * pair)));
    }
    block::sync();
  }

  /// Every `step`-th piece of work of the token's queries, keys and values.
  TH_DEVICE void run(u32 first, u32 step) const {
    const u32 of_row = items_of_row(turn, params_.head_dim, params_.rotary_dim);
    const u32 queries = params_.q.data == 0 ? 0 : params_.heads * of_row;
    const u32 keys = params_.kv_heads * of_row;
    const u32 of_value = params_.value_dim / piece_columns;
    const u32 values = slot_ < 0 ? 0 : params_.kv_heads * of_value;
    TH_NO_UNROLL
    for (u32 item = first; item < queries + keys + values; item += step) {
      if (item < queries) {
        const u32 head = item / of_row;
        turn_piece(query_row(head), item - head * of_row);
      } else if (item < queries + keys) {
        const u32 head = (item - queries) / of_row;
        turn_piece(key_row(head), item - queries - head * of_row);
      } else {
        const u32 head = (item - queries - keys) / of_value;
        copy_value(head, (item - queries - keys - head * of_value) * piece_columns);
      }
    }
  }

 private:
  TH_DEVICE i64 number_of(const Numbers& numbers) const {
    if (numbers.words == 2) {
      return Global<i64>{numbers.data}.load(token_);
    }
    return Global<i32>{numbers.data}.load(token_);
  }

  TH_DEVICE Angle angle_in_table(i64 position, u32 pair) const {
    const Global<float> row = Global<float>{params_.table}.offset(position * params_.table_stride);
    return {{row.load(pair), row.load(pair + params_.rotary_dim / 2)}};
  }

  TH_DEVICE Global<u16> row_of(const Rows& rows, u32 head) const {
    return rows.data == 0 ? Global<u16>{0}
                          : Global<u16>{rows.data}.offset(token_ * rows.token_stride + head * rows.head_stride);
  }
  /// Null where the token has no slot, or a slot that does not exist.
  TH_DEVICE Global<u8> row_of(const Pool& pool, u32 head) const {
    if (slot_ < 0 || slot_ >= params_.slots_end) {
      return {0};
    }
    const i64 page = slot_ / params_.page_size;
    const i64 row = slot_ - page * params_.page_size;
    constexpr i64 element_bytes = Row::fp8 ? 1 : 2;
    return Global<u8>{pool.data}.offset((page * pool.page_stride + row * pool.row_stride + head * pool.head_stride) *
                                        element_bytes);
  }
  TH_DEVICE float descale_of(const Pool& pool, u32 head) const {
    return pool.descale == 0 ? 1.0F : Global<float>{pool.descale}.load(head * pool.descale_stride);
  }

  TH_DEVICE Row query_row(u32 head) const { return {row_of(params_.q, head), row_of(params_.q_out, head), {0}, 1.0F}; }
  TH_DEVICE Row key_row(u32 head) const {
    return {row_of(params_.k, head), row_of(params_.k_out, head), row_of(params_.k_cache, head),
            descale_of(params_.k_cache, head)};
  }

  TH_DEVICE void turn_pair(float& x, float& y, u32 pair) const {
    const Angle by = turns_.load(pair);
    const float before = x;
    x = before * by.at[0] - y * by.at[1];
    y = before * by.at[1] + y * by.at[0];
  }

  TH_DEVICE void turn_piece(const Row& row, u32 item) const {
    if constexpr (turn == Turn::single_halves) {
      turn_single(row, item);
      return;
    }
    float piece[piece_columns];
    if constexpr (turn == Turn::halves) {
      const u32 half = params_.rotary_dim / 2;
      if (item < half / piece_columns) {
        turn_halves(row, item * piece_columns);
        return;
      }
      const u32 column = half + item * piece_columns;
      row.load(piece, column);
      row.store(column, piece);
    } else {
      const u32 column = item * piece_columns;
      row.load(piece, column);
      if constexpr (turn == Turn::interleaved) {
        TH_UNROLL
        for (u32 i = 0; i < piece_columns; i += 2) {
          if (column + i < params_.rotary_dim) {
            turn_pair(piece[i], piece[i + 1], (column + i) / 2);
          }
        }
      }
      row.store(column, piece);
    }
  }

  TH_DEVICE void turn_halves(const Row& row, u32 column) const {
    const u32 half = params_.rotary_dim / 2;
    float x[piece_columns];
    float y[piece_columns];
    row.load(x, column);
    row.load(y, column + half);
    TH_UNROLL
    for (u32 i = 0; i < piece_columns; ++i) {
      turn_pair(x[i], y[i], column + i);
    }
    row.store(column, x);
    row.store(column + half, y);
  }

  TH_DEVICE void turn_single(const Row& row, u32 item) const {
    const u32 half = params_.rotary_dim / 2;
    if (item >= half) {
      row.store_one(half + item, row.load_one(half + item));
      return;
    }
    float x = row.load_one(item);
    float y = row.load_one(item + half);
    turn_pair(x, y, item);
    row.store_one(item, x);
    row.store_one(item + half, y);
  }

  /// Values of 16 bits are copied bit by bit.
  TH_DEVICE void copy_value(u32 head, u32 column) const {
    const Global<u16> from = row_of(params_.v, head).offset(column);
    const Global<u8> cache = row_of(params_.v_cache, head);
    if (cache.is_null()) {
      return;
    }
    if constexpr (Row::fp8) {
      float piece[piece_columns];
      load_piece<Element>(piece, from);
      Row{{0}, {0}, cache, descale_of(params_.v_cache, head)}.store(column, piece);
    } else {
      using Words = Vector<u32, piece_columns / 2>;
      cache.template as<u16>().offset(column).template as<Words>().store(0, from.template as<Words>().load());
    }
  }

  const AppendParams& params_;
  i64 token_;
  i64 slot_;
  Shared<Angle> turns_;
};

/// The grid is [tokens, any number of blocks that share a token's rows].
template <typename Element, typename CacheElement, Turn turn>
TH_KERNEL(threads, 1)
append(TH_GRID_CONSTANT const AppendParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const Append<Element, CacheElement, turn> rows(params, launch::block_index().x);
  rows.prepare();
  rows.run(launch::block_index().y * threads + launch::thread_index(), launch::block_count().y * threads);
}

}  // namespace thresher::strategies::append
