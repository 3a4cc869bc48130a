#pragma once
/// The kernels around the two matrix products of `two_pass`. One converts operands exactly to the format that the
/// product takes. Another applies the activation to its float32 results.
#include "machine/launch.hpp"
#include "strategies/gemm/device/definition.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/two_pass/params.hpp"

namespace thresher::strategies::gemm::two_pass {

using namespace definition;

/// Which row a thread works on, and its place in it; `row` is past the end for threads beyond the last.
struct Place {
  u32 row;
  u32 column;
};

TH_DEVICE Place place(u32 threads_per_row) {
  const u64 thread = static_cast<u64>(launch::block_index().x) * launch::thread_count() + launch::thread_index();
  return {static_cast<u32>(thread / threads_per_row), static_cast<u32>(thread % threads_per_row)};
}

/// Half or BFloat16 out. A product value×scale has at most 6 significant bits, so packing it rounds nothing; the
/// tensor's global scale is left to `activate`.
template <typename Out>
TH_KERNEL(threads, 1)
widen_nvfp4(TH_GRID_CONSTANT const WidenParameters parameters) {
  const Place at = place(parameters.threads_per_row);
  if (at.row >= parameters.rows) {
    return;
  }
  const Global<u8> values{parameters.values + static_cast<u64>(at.row * parameters.row_bytes) + at.column * 8};
  const u64 scale_at = scale_offset(parameters.scales_blocked != 0, at.row, at.column, parameters.scales_per_row);
  const float scale = e4m3_to_float(Global<u8>{parameters.scales}.load(static_cast<i64>(scale_at)));
  u8 codes[8];
  if ((values.address & 7) == 0) {
    const auto word = values.as<Vector<u32, 2>>().load();
    TH_UNROLL
    for (u32 i = 0; i < 8; ++i) {
      codes[i] = static_cast<u8>(word.at[i / 4] >> (8 * (i % 4)));
    }
  } else {
    TH_UNROLL
    for (u32 i = 0; i < 8; ++i) {
      codes[i] = values.load(i);
    }
  }
  Vector<u32, 4> packed[2];
  TH_UNROLL
  for (u32 i = 0; i < 8; ++i) {
    const float low = e2m1_to_float(codes[i]) * scale;
    const float high = e2m1_to_float(codes[i] >> 4) * scale;
    packed[i / 4].at[i % 4] = convert::pack<Out>(low, high);
  }
  const Global<Vector<u32, 4>> out{parameters.out};
  const i64 first = (static_cast<i64>(at.row) * parameters.threads_per_row + at.column) * 2;
  out.store(first, packed[0]);
  out.store(first + 1, packed[1]);
}

/// fp16 or bf16 to float32.
template <typename In>
TH_KERNEL(threads, 1)
widen_to_float(TH_GRID_CONSTANT const WidenParameters parameters) {
  const Place at = place(parameters.threads_per_row);
  if (at.row >= parameters.rows) {
    return;
  }
  const Global<In> values{parameters.values + static_cast<u64>(at.row * parameters.row_bytes)};
  const Global<Vector<float, 4>> out{parameters.out};
  const i64 first = (static_cast<i64>(at.row) * parameters.threads_per_row + at.column) * 2;
  TH_UNROLL
  for (u32 half = 0; half < 2; ++half) {
    Vector<float, 4> four;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      four.at[i] = convert::to_float(values.load(at.column * plain_elements_per_thread + half * 4 + i));
    }
    out.store(first + half, four);
  }
}

/// 16-bit elements (Word is u16) as they are, from rows that the product's alignment does not allow.
template <typename Word>
TH_KERNEL(threads, 1)
copy_rows(TH_GRID_CONSTANT const WidenParameters parameters) {
  const Place at = place(parameters.threads_per_row);
  if (at.row >= parameters.rows) {
    return;
  }
  const Global<Word> values{parameters.values + static_cast<u64>(at.row * parameters.row_bytes)};
  Vector<Word, plain_elements_per_thread> eight;
  TH_UNROLL
  for (u32 i = 0; i < plain_elements_per_thread; ++i) {
    eight.at[i] = values.load(at.column * plain_elements_per_thread + i);
  }
  const i64 index = static_cast<i64>(at.row) * parameters.threads_per_row + at.column;
  Global<Vector<Word, plain_elements_per_thread>>{parameters.out}.store(index, eight);
}

/// In float32 with one rounding to Out. The scales are applied in float64, so that no order of theirs overflows early.
template <ActivationCode kind, typename Out>
TH_KERNEL(threads, 1)
activate(TH_GRID_CONSTANT const ActivateParameters parameters) {
  const u32 threads_per_row = (parameters.columns + outputs_per_thread - 1) / outputs_per_thread;
  const Place at = place(threads_per_row);
  if (at.row >= parameters.rows) {
    return;
  }
  const double a_scale = global_scale(parameters.a_scale);
  const double gate_scale = a_scale * static_cast<double>(global_scale(parameters.gate_scale));
  const double up_scale = a_scale * static_cast<double>(global_scale(parameters.up_scale));
  const ActivationConstants constants{parameters.alpha, parameters.limit, parameters.up_offset};
  const i64 four_index = at.row * (parameters.intermediate_stride / outputs_per_thread) + at.column;
  const auto gates = Global<Vector<float, 4>>{parameters.gate}.load(four_index);
  const auto ups = Global<Vector<float, 4>>{parameters.up}.load(four_index);
  Vector<Out, outputs_per_thread> outputs;
  TH_UNROLL
  for (u32 i = 0; i < outputs_per_thread; ++i) {
    const auto gate = static_cast<float>(gates.at[i] * gate_scale);
    const auto up = static_cast<float>(ups.at[i] * up_scale);
    outputs.at[i] = rounded<Out>(definition::activate(kind, gate, up, constants));
  }
  const u32 column = at.column * outputs_per_thread;
  const Global<Out> row = Global<Out>{parameters.out}.offset(at.row * parameters.out_stride + column);
  if (parameters.vector_stores != 0 && column + outputs_per_thread <= parameters.columns) {
    row.template as<Vector<Out, outputs_per_thread>>().store(0, outputs);
    return;
  }
  TH_UNROLL
  for (u32 i = 0; i < outputs_per_thread; ++i) {
    if (column + i < parameters.columns) {
      row.store(i, outputs.at[i]);
    }
  }
}

}  // namespace thresher::strategies::gemm::two_pass
