#pragma once
/// One query row by one warp, key by key: the plainest way to compute attention on a GPU.
#include "strategies/attention/device/logits.hpp"

namespace thresher::strategies::attention {

template <typename Element>
TH_DEVICE float widen(u16 bits) {
  return convert::to_float(Element{bits});
}

/// All 32 lanes together; lane l owns columns [l·D/32, (l+1)·D/32) and stores those inside [first_column, end_column).
/// Keys that the row does not see are not read.
template <typename Element, int head_dim>
TH_DEVICE void attend_row(const Params& params, const Sequence& sequence, i32 query, i32 first_column, i32 end_column) {
  constexpr int owned = head_dim / 32;
  using Piece = Vector<u16, owned>;
  const i32 column = static_cast<i32>(warp::lane()) * owned;
  const auto piece = [&](const Operand& operand, i32 head, i32 row) {
    return Global<u16>{operand.data}
        .offset(element_offset(operand, sequence.batch, head, row) + column)
        .template as<Piece>()
        .load();
  };
  float q[owned];
  float o[owned];
  const Piece query_piece = piece(params.q, sequence.head, sequence.first_query + query);
  TH_UNROLL
  for (int i = 0; i < owned; ++i) {
    q[i] = widen<Element>(query_piece.at[i]);
    o[i] = 0.0F;
  }
  float shift = -largest_float;
  float sum = 0.0F;
  const Visible visible = visible_keys(params, sequence, query);
  TH_NO_UNROLL
  for (i32 key = visible.begin; key < visible.end; ++key) {
    const Piece key_piece = piece(params.k, sequence.kv_head, sequence.first_key + key);
    const Piece value_piece = piece(params.v, sequence.kv_head, sequence.first_key + key);
    float dot = 0.0F;
    TH_UNROLL
    for (int i = 0; i < owned; ++i) {
      dot = math::fma(q[i], widen<Element>(key_piece.at[i]), dot);
    }
    const float power = exponent(params, warp::reduce(dot, [](float a, float b) { return a + b; }));
    const float new_shift = finite(math::max(shift, power));
    const float factor = math::exp2_approx(shift - new_shift);
    const float weight = math::exp2_approx(power - new_shift);
    shift = new_shift;
    sum = math::fma(sum, factor, weight);
    TH_UNROLL
    for (int i = 0; i < owned; ++i) {
      o[i] = math::fma(weight, widen<Element>(value_piece.at[i]), o[i] * factor);
    }
  }
  const float factor = visible.begin < visible.end ? math::reciprocal_approx(sum) : 0.0F;
  Piece out;
  TH_UNROLL
  for (int i = 0; i < owned; ++i) {
    out.at[i] = static_cast<u16>(convert::pack<Element>(o[i] * factor, 0.0F) & 0xFFFFU);
  }
  if (column >= first_column && column < end_column) {
    Global<u16>{params.o.data}
        .offset(element_offset(params.o, sequence.batch, sequence.head, sequence.first_query + query) + column)
        .template as<Piece>()
        .store(0, out);
  }
  if (first_column == 0 && warp::lane() == 0 && wants_lse(params)) {
    store_lse(params, sequence, query, visible.begin < visible.end ? lse_of(shift, sum) : minus_infinity());
  }
}

}  // namespace thresher::strategies::attention
