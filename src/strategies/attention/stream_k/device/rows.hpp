#pragma once
/// One warp turns a query row's state into its output: lane l owns columns [l·V/32, (l+1)·V/32).
#include "strategies/attention/device/row.hpp"
#include "strategies/attention/stream_k/device/work.hpp"

namespace thresher::strategies::attention {

template <int count>
struct RowState {
  float output[count];
  float max;
  float sum;
};

/// `count` contiguous floats, four at a time.
template <int count, typename Memory>
TH_DEVICE void load_floats(float (&to)[count], const Memory& from) {
  constexpr int wide = count < 4 ? count : 4;
  TH_UNROLL
  for (int i = 0; i < count; i += wide) {
    const auto piece = from.offset(i).template as<Vector<float, wide>>().load();
    TH_UNROLL
    for (int j = 0; j < wide; ++j) {
      to[i + j] = piece.at[j];
    }
  }
}

/// `wide` of these floats from `first` on.
template <int wide, int count>
TH_DEVICE Vector<float, wide> piece_of(const float (&from)[count], int first) {
  Vector<float, wide> piece;
  TH_UNROLL
  for (int i = 0; i < wide; ++i) {
    piece.at[i] = from[first + i];
  }
  return piece;
}

/// Combines the values of `count` neighbouring lanes, a power of two, for each of them.
template <u32 count, typename Combine>
TH_DEVICE float over_neighbours(float value, const Combine& combine) {
  TH_UNROLL
  for (u32 distance = count / 2; distance > 0; distance /= 2) {
    value = combine(value, warp::shuffle_xor(value, distance));
  }
  return value;
}

/// Merges a row's state from its parts in their order, at most `max_parts`, a power of two. `sums_of` gives a part's
/// maximum and sum, and `piece_of` the place of the lane's columns.
template <int owned, u32 max_parts, typename SumsOf, typename PieceOf>
TH_DEVICE RowState<owned> merged_parts(u32 parts, const SumsOf& sums_of, const PieceOf& piece_of) {
  static_assert(max_parts <= 32 && (max_parts & (max_parts - 1)) == 0);
  const u32 place = warp::lane() % max_parts;
  const Vector<float, 2> own = place < parts ? sums_of(place) : Vector<float, 2>{{-largest_float, 0.0F}};
  RowState<owned> state{};
  state.max = over_neighbours<max_parts>(own.at[0], [](float a, float b) { return math::max(a, b); });
  const float factor = math::exp2_approx(own.at[0] - state.max);
  state.sum = over_neighbours<max_parts>(own.at[1] * factor, [](float a, float b) { return a + b; });
  TH_UNROLL
  for (u32 part = 0; part < max_parts; ++part) {
    const bool is_there = part < parts;
    float piece[owned];
    load_floats(piece, piece_of(is_there ? part : 0));
    const float weight = warp::shuffle(factor, part);
    TH_UNROLL
    for (int i = 0; i < owned; ++i) {
      state.output[i] = is_there ? math::fma(weight, piece[i], state.output[i]) : state.output[i];
    }
  }
  return state;
}

/// The exponent of a dot product that is still to be multiplied by `descale`.
template <Logits logits>
TH_DEVICE float exponent_of(const Params& params, float dot, float descale) {
  return logits == Logits::general ? exponent(params, dot * descale) : dot * (params.scale_log2 * descale);
}

/// `count` elements of one query, key or value, as floats.
template <typename Stored, int count>
TH_DEVICE void load_elements(float (&to)[count], const Operand& operand, const PageRow& at, i32 head, i32 column) {
  const i64 offset = element_offset(operand, at.page, head, at.row) + column;
  const auto piece =
      Global<Bits<Stored>>{operand.data}.offset(offset).template as<Vector<Bits<Stored>, count>>().load();
  if constexpr (is_same<Stored, E4M3>) {
    TH_UNROLL
    for (int i = 0; i < count; i += 2) {
      const u32 pair = convert::e4m3x2_to_half2(static_cast<u16>(piece.at[i] | piece.at[i + 1] << 8));
      to[i] = low_of<Half>(pair);
      to[i + 1] = high_of<Half>(pair);
    }
  } else {
    TH_UNROLL
    for (int i = 0; i < count; ++i) {
      to[i] = convert::to_float(Stored{piece.at[i]});
    }
  }
}

/// Computes a row again, key by key: only those that it sees.
template <StreamKConfig config, typename QueryElement, typename KeyElement, Logits logits>
TH_DEVICE void attend_page_row(const StreamKParams& params, const QueryTile& tile, u32 row,
                               RowState<config.value_dim / 32>& state) {
  constexpr int owned = config.head_dim / 32;
  constexpr int owned_values = config.value_dim / 32;
  const Params& call = params.call;
  const i32 query = tile.query(params, row);
  const i32 lane = static_cast<i32>(warp::lane());
  const float descale = dot_descale<QueryElement, KeyElement>(call, tile.batch, tile.kv_head);
  float q[owned];
  load_elements<QueryElement>(q, call.q, {0, tile.first_query + query, true}, tile.head(params, row), lane * owned);
  TH_UNROLL
  for (int i = 0; i < owned_values; ++i) {
    state.output[i] = 0.0F;
  }
  state.max = -largest_float;
  state.sum = 0.0F;
  const Visible visible = tile.visible(params, query);
  TH_NO_UNROLL
  for (i32 key = visible.begin; key < visible.end; ++key) {
    const PageRow at = page_row(call.paging, tile.batch, key);
    float piece[owned];
    float value[owned_values];
    load_elements<KeyElement>(piece, call.k, at, tile.kv_head, lane * owned);
    load_elements<KeyElement>(value, call.v, at, tile.kv_head, lane * owned_values);
    float dot = 0.0F;
    TH_UNROLL
    for (int i = 0; i < owned; ++i) {
      dot = math::fma(q[i], piece[i], dot);
    }
    const float power = exponent_of<logits>(call, warp::reduce(dot, [](float a, float b) { return a + b; }), descale);
    const auto [factor, weight] = add_key(state.max, state.sum, power);
    TH_UNROLL
    for (int i = 0; i < owned_values; ++i) {
      state.output[i] = math::fma(weight, value[i], state.output[i] * factor);
    }
  }
}

/// Stores output and LSE of one row. A row that holds a NaN is computed again where the tile's rows see different keys.
/// A value that the row does not see may have
/// spoilt it, since 0·NaN is NaN.
template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement>
TH_DEVICE void finish_row(const StreamKParams& params, const QueryTile& tile, u32 row,
                          RowState<config.value_dim / 32>& state) {
  constexpr int owned = config.value_dim / 32;
  const Params& call = params.call;
  bool is_nan = false;
  TH_UNROLL
  for (int i = 0; i < owned; ++i) {
    is_nan = is_nan || state.output[i] != state.output[i];
  }
  if (warp::any(is_nan)) {
    const Visible seen = tile.seen(params);
    const Visible by_all = tile.seen_by_all(params);
    if (seen.begin != by_all.begin || seen.end != by_all.end) {
      attend_page_row<config, QueryElement, KeyElement, logits>(params, tile, row, state);
    }
  }
  const i32 query = tile.query(params, row);
  const i32 head = tile.head(params, row);
  const Visible visible = tile.visible(params, query);
  const bool sees = visible.begin < visible.end;
  const RowEnd end = end_row(call, head, state.max, state.sum, sees);
  const float factor = end.factor * descale_of(call.value_descale, tile.batch, tile.kv_head);
  constexpr int words = owned / 2;
  Vector<u32, words> packed;
  TH_UNROLL
  for (int i = 0; i < words; ++i) {
    packed.at[i] = convert::pack<Element>(sees ? state.output[2 * i] * factor : 0.0F,
                                          sees ? state.output[2 * i + 1] * factor : 0.0F);
  }
  Global<u16>{call.o.data}
      .offset(element_offset(call.o, 0, head, tile.first_query + query) + static_cast<i32>(warp::lane()) * owned)
      .template as<Vector<u32, words>>()
      .store(0, packed);
  if (wants_lse(call) && warp::lane() == 0) {
    Global<float>{call.lse}.store(head * call.lse_head_stride + tile.first_query + query, end.lse);
  }
}

}  // namespace thresher::strategies::attention
