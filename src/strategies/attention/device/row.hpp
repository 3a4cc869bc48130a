#pragma once
/// One warp computes one query row, key by key: the plainest way to compute attention on a GPU.
#include "strategies/attention/device/codes.hpp"
#include "strategies/attention/device/logits.hpp"

namespace thresher::strategies::attention {

/// An element's type in memory.
template <typename Element>
using Bits = decltype(Element::bits);

template <typename Element>
TH_DEVICE float widen(Bits<Element> bits) {
  if constexpr (is_same<Element, E4M3>) {
    return low_of<Half>(lower_halves(bits));
  } else {
    return convert::to_float(Element{bits});
  }
}

/// The factor of keys or values of such elements.
template <typename KeyElement>
TH_DEVICE float factor_of(const Descale& descale, i32 batch, i32 kv_head) {
  return is_same<KeyElement, E4M3> ? descale_of(descale, batch, kv_head) : 1.0F;
}

/// The factor of dot products of such queries and keys.
template <typename QueryElement, typename KeyElement>
TH_DEVICE float dot_descale(const Params& params, i32 batch, i32 kv_head) {
  return factor_of<QueryElement>(params.query_descale, batch, kv_head) *
         factor_of<KeyElement>(params.key_descale, batch, kv_head);
}

/// Loads `count` contiguous elements, by accesses as wide as their number allows.
template <typename Element, int count>
TH_DEVICE void load_elements(float (&to)[count], Global<Bits<Element>> from) {
  constexpr int together = count & -count;
  TH_UNROLL
  for (int i = 0; i < count; i += together) {
    const auto piece = from.offset(i).template as<Vector<Bits<Element>, together>>().load();
    TH_UNROLL
    for (int j = 0; j < together; ++j) {
      to[i + j] = widen<Element>(piece.at[j]);
    }
  }
}

/// Stores `count` values times `factor` as contiguous elements.
template <typename Element, int count>
TH_DEVICE void store_elements(Global<u16> to, const float (&values)[count], float factor) {
  constexpr int together = count & -count;
  TH_UNROLL
  for (int i = 0; i < count; i += together) {
    Vector<u16, together> piece;
    TH_UNROLL
    for (int j = 0; j < together; ++j) {
      piece.at[j] = static_cast<u16>(convert::pack<Element>(values[i + j] * factor, 0.0F) & 0xFFFFU);
    }
    to.offset(i).template as<Vector<u16, together>>().store(0, piece);
  }
}

/// All 32 lanes call it. Lane l owns columns [l·D/32, (l+1)·D/32) of queries and keys, and the same share of the
/// values' columns. It stores those inside [first_column, end_column). Keys that the row does not see are not read.
template <typename Element, typename QueryElement, typename KeyElement, int head_dim, int value_dim>
TH_DEVICE void attend_row(const Params& params, const Sequence& sequence, i32 query, i32 first_column, i32 end_column) {
  constexpr int owned = head_dim / 32;
  constexpr int owned_values = value_dim / 32;
  const i32 lane = static_cast<i32>(warp::lane());
  const i32 column = lane * owned_values;
  const auto own_row = [&](const Operand& operand) {
    return element_offset(operand, sequence.batch, sequence.head, sequence.first_query + query);
  };
  const auto key_row = [&](const Operand& operand, i32 key) {
    const PageRow at = is_paged(params) ? page_row(params.paging, sequence.batch, key)
                                        : PageRow{sequence.batch, sequence.first_key + key, true};
    return Global<Bits<KeyElement>>{operand.data}.offset(element_offset(operand, at.page, sequence.kv_head, at.row));
  };
  float q[owned];
  float o[owned_values];
  load_elements<QueryElement>(q, Global<Bits<QueryElement>>{params.q.data}.offset(own_row(params.q) + lane * owned));
  TH_UNROLL
  for (int i = 0; i < owned_values; ++i) {
    o[i] = 0.0F;
  }
  float running_max = -largest_float;
  float sum = 0.0F;
  const float descale = dot_descale<QueryElement, KeyElement>(params, sequence.batch, sequence.kv_head);
  const Visible visible = visible_keys(params, sequence, query);
  TH_NO_UNROLL
  for (i32 key = visible.begin; key < visible.end; ++key) {
    float k[owned];
    float v[owned_values];
    load_elements<KeyElement>(k, key_row(params.k, key).offset(lane * owned));
    load_elements<KeyElement>(v, key_row(params.v, key).offset(column));
    float dot = 0.0F;
    TH_UNROLL
    for (int i = 0; i < owned; ++i) {
      dot = math::fma(q[i], k[i], dot);
    }
    const float power = exponent(params, descale * warp::reduce(dot, [](float a, float b) { return a + b; }));
    const float new_max = finite(math::max(running_max, power));
    const float factor = math::exp2_approx(running_max - new_max);
    const float weight = math::exp2_approx(power - new_max);
    running_max = new_max;
    sum = math::fma(sum, factor, weight);
    TH_UNROLL
    for (int i = 0; i < owned_values; ++i) {
      o[i] = math::fma(weight, v[i], o[i] * factor);
    }
  }
  const RowEnd end = end_row(params, sequence.head, running_max, sum, visible.begin < visible.end);
  if (column >= first_column && column < end_column) {
    store_elements<Element>(Global<u16>{params.o.data}.offset(own_row(params.o) + column), o,
                            end.factor * factor_of<KeyElement>(params.value_descale, sequence.batch, sequence.kv_head));
  }
  if (first_column == 0 && lane == 0 && wants_lse(params)) {
    store_lse(params, sequence, query, end.lse);
  }
}

}  // namespace thresher::strategies::attention
