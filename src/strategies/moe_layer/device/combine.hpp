#pragma once
/// Adds the weighted rows of a token's top-k assignments in their order, in float32.
#include "machine/launch.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/moe_layer/params.hpp"

namespace thresher::strategies::moe_layer {

using namespace machine;
using gemm::Number;
using gemm::NumberType;
using gemm::rounded;

TH_DEVICE float as_float(float value) { return value; }
TH_DEVICE float as_float(Half value) { return convert::to_float(value); }
TH_DEVICE float as_float(BFloat16 value) { return convert::to_float(value); }

/// A block combines combine_threads · thread_columns columns of one token.
template <Number row_number, Number out_number>
TH_KERNEL(combine_threads, 1)
combine_rows_kernel(TH_GRID_CONSTANT const CombineParams params) {
  using Row = typename NumberType<row_number>::type;
  using Out = typename NumberType<out_number>::type;
  // The elements of one access, and the accesses of a thread's columns.
  constexpr int row_width = 16 / sizeof(Row);
  constexpr int row_pieces = thread_columns / row_width;
  constexpr int out_width = 16 / sizeof(Out);
  constexpr u32 together = 8;  // assignments whose rows are loaded at once
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const u32 token = launch::block_index().x;
  const u32 column = (launch::block_index().y * combine_threads + launch::thread_index()) * thread_columns;
  if (column >= params.columns) {
    return;
  }
  const i64 first_choice = static_cast<i64>(token) * params.top_k;
  float sums[thread_columns] = {};
  TH_NO_UNROLL
  for (u32 first = 0; first < params.top_k; first += together) {
    i32 rows[together];
    float weights[together];
    Vector<Row, row_width> values[together][row_pieces] = {};
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const bool is_one = first + i < params.top_k;
      rows[i] = is_one ? params.inverse.load(first_choice + first + i) : -1;
      weights[i] = is_one ? params.weights.load(first_choice + first + i) : 0.0F;
    }
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (rows[i] >= 0) {
        const Global<Row> row = params.rows.as<Row>().offset(static_cast<i64>(rows[i]) * params.columns + column);
        TH_UNROLL
        for (int piece = 0; piece < row_pieces; ++piece) {
          values[i][piece] = row.template as<Vector<Row, row_width>>().load(piece);
        }
      }
    }
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (rows[i] >= 0) {
        TH_UNROLL
        for (u32 c = 0; c < thread_columns; ++c) {
          sums[c] = math::fma(weights[i], as_float(values[i][c / row_width].at[c % row_width]), sums[c]);
        }
      }
    }
  }
  const Global<Out> out = params.out.as<Out>().offset(static_cast<i64>(token * params.out_stride + column));
  if (params.wide != 0) {
    TH_UNROLL
    for (u32 piece = 0; piece < thread_columns / out_width; ++piece) {
      Vector<Out, out_width> values;
      TH_UNROLL
      for (int c = 0; c < out_width; ++c) {
        values.at[c] = rounded<Out>(sums[piece * out_width + c]);
      }
      out.template as<Vector<Out, out_width>>().store(piece, values);
    }
  } else {
    TH_UNROLL
    for (u32 c = 0; c < thread_columns; ++c) {
      out.store(c, rounded<Out>(sums[c]));
    }
  }
}

}  // namespace thresher::strategies::moe_layer
