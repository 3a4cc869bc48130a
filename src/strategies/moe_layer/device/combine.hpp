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

/// The rows of several of a token's assignments, and their weights; no row of one that is skipped, or behind the last.
template <u32 count>
struct ChosenRows {
  i32 rows[count];
  float weights[count];

  TH_DEVICE void load(const CombineParams& params, u32 first) {
    const i64 token = static_cast<i64>(launch::block_index().x) * params.top_k;
    TH_UNROLL
    for (u32 i = 0; i < count; ++i) {
      const bool is_one = first + i < params.top_k;
      rows[i] = is_one ? params.inverse.load(token + first + i) : -1;
      weights[i] = is_one ? params.weights.load(token + first + i) : 0.0F;
    }
  }
};

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
  if (params.settled == 0) {
    launch::wait_for_earlier_grids();
  } else {
    (void)params.inverse.as<u32>().load_acquire();  // the L1 cache may have those of an earlier call
  }
  const u32 token = launch::block_index().x;
  const u32 column = (launch::block_index().y * combine_threads + launch::thread_index()) * thread_columns;
  if (column >= params.columns) {
    return;
  }
  float sums[thread_columns] = {};
  ChosenRows<together> chosen;
  chosen.load(params, 0);
  launch::wait_for_earlier_grids();
  TH_NO_UNROLL
  for (u32 next = together;; next += together) {
    Vector<Row, row_width> values[together][row_pieces] = {};
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (chosen.rows[i] >= 0) {
        const i64 first = static_cast<i64>(chosen.rows[i]) * params.columns + column;
        const Global<Row> row = params.rows.as<Row>().offset(first);
        TH_UNROLL
        for (int piece = 0; piece < row_pieces; ++piece) {
          values[i][piece] = row.template as<Vector<Row, row_width>>().load(piece);
        }
      }
    }
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (chosen.rows[i] >= 0) {
        TH_UNROLL
        for (u32 c = 0; c < thread_columns; ++c) {
          sums[c] = math::fma(chosen.weights[i], as_float(values[i][c / row_width].at[c % row_width]), sums[c]);
        }
      }
    }
    if (next >= params.top_k) {
      break;
    }
    chosen.load(params, next);
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
