#pragma once
/// NVFP4 weights into the packed layouts, once, when a model is loaded.
#include "machine/launch.hpp"
#include "machine/numbers.hpp"
#include "machine/warp.hpp"
#include "strategies/dual_gemm/packed/device/fold.hpp"
#include "strategies/dual_gemm/packed/device/matrix.hpp"

namespace thresher::strategies::dual_gemm::packed {

struct PackParams {
  Matrix gate;
  Matrix up;
  Global<u8> packed;
  Global<float> row_factors;  ///< fast only
  u32 k_blocks = 0;           ///< blocks of weights along K
  u32 output_groups = 0;
};

/// Which rows a block holds as gate and up.
struct GateAndUp {
  static TH_DEVICE Matrix matrix(const PackParams& params, bool up) { return up ? params.up : params.gate; }
  static TH_DEVICE u32 row(u32 group, bool, u32 output) { return group * block_outputs + output; }
};
/// Of one matrix: a warp's eight gate rows and eight up rows are 16 of its rows, one behind the other.
struct OneMatrix {
  static TH_DEVICE Matrix matrix(const PackParams& params, bool) { return params.gate; }
  static TH_DEVICE u32 row(u32 group, bool up, u32 output) {
    return group * 2 * block_outputs + output / 8 * 16 + (up ? 8 : 0) + output % 8;
  }
};

/// The two codes from `column` (even) of a row, beyond the matrix zero, with the sign of their scale moved into them.
TH_DEVICE u32 signed_codes(const Matrix& matrix, u32 row, u32 column) {
  if (row >= matrix.rows || column / 16 >= matrix.scale_columns) {
    return 0;
  }
  const u32 codes = matrix.values.load(static_cast<i64>(row) * matrix.row_bytes + column / 2);
  return (scale_code(matrix, row, column / 16) & 0x80U) != 0 ? codes ^ 0x88U : codes;
}

TH_DEVICE u32 magnitude_of_scale(const Matrix& matrix, u32 row, u32 column) {
  return row >= matrix.rows || column >= matrix.scale_columns ? 0 : scale_code(matrix, row, column) & 0x7FU;
}

/// One thread makes one thread's 16 bytes of a block; the first 32 of a block also make its scales.
template <class Rows>
TH_DEVICE void pack_block(const PackParams& params, u32 block) {
  const u32 thread = machine::launch::thread_index();
  const u32 group = block / params.k_blocks;
  const u32 first_column = block % params.k_blocks * block_k;
  const Global<u8> out = params.packed.offset(static_cast<i64>(block) * block_bytes);
  machine::Vector<u32, 4> words;
  TH_UNROLL
  for (u32 step = 0; step < steps; ++step) {
    words.at[step] = 0;
    TH_UNROLL
    for (u32 pair = 0; pair < 4; ++pair) {
      const Source from = source(thread, step, pair);
      const u32 codes = signed_codes(Rows::matrix(params, from.up), Rows::row(group, from.up, from.output),
                                     first_column + from.column);
      words.at[step] |= place(codes, pair) | static_cast<u32>(place(codes >> 4, pair)) << 16;
    }
  }
  out.as<machine::Vector<u32, 4>>().store(thread, words);
  if (thread < block_outputs) {
    TH_UNROLL
    for (u32 step = 0; step < steps; ++step) {
      const u32 column = first_column / 16 + step;
      TH_UNROLL
      for (u32 half = 0; half < 2; ++half) {
        const bool up = half == 1;
        const u32 code = magnitude_of_scale(Rows::matrix(params, up), Rows::row(group, up, thread), column);
        out.store(block_value_bytes + scale_byte(up, thread, step), static_cast<u8>(code));
      }
    }
  }
}

TH_KERNEL(128, 1) pack_kernel(TH_GRID_CONSTANT const PackParams params) {
  pack_block<GateAndUp>(params, machine::launch::block_index().x);
}

/// A warp finds the factor of one row: 2^-e, NaN when the row has a NaN scale, 1 beyond the matrix.
template <class Rows>
TH_DEVICE void find_row_factor(const PackParams& params, u32 index) {
  const u32 lane = machine::warp::lane();
  const bool up = index % fast::group_factors >= block_outputs;
  const u32 row = Rows::row(index / fast::group_factors, up, index % block_outputs);
  const Matrix matrix = Rows::matrix(params, up);
  u32 largest = 0;
  if (row < matrix.rows) {
    for (u32 column = lane; column < matrix.scale_columns; column += 32) {
      const u32 code = scale_code(matrix, row, column) & 0x7FU;
      largest = code > largest ? code : largest;
    }
  }
  largest = machine::warp::reduce(largest, [](u32 a, u32 b) { return b > a ? b : a; });
  if (lane == 0) {
    constexpr u32 nan_bits = 0x7FC00000U;
    params.row_factors.store(index, largest == 0x7FU ? machine::convert::bits_float(nan_bits)
                                                     : fast::power_of_two(-fast::row_exponent(largest)));
  }
}

TH_KERNEL(128, 1) row_factors_kernel(TH_GRID_CONSTANT const PackParams params) {
  find_row_factor<GateAndUp>(params, machine::launch::block_index().x * 4 + machine::warp::index());
}

/// The exponent e of a row of the block, from its factor; 0 for NaN, of which nothing else matters.
TH_DEVICE int exponent_of_row(const PackParams& params, u32 group, bool up, u32 output) {
  const u32 factor = machine::convert::float_bits(params.row_factors.load(fast::factor_index(group, up, output)));
  return factor >= 0x7F800000U ? 0 : 127 - static_cast<int>(factor >> 23);
}

/// One thread makes one thread's 32 bytes of values and 4 of scales of a block.
template <class Rows>
TH_DEVICE void pack_fast_block(const PackParams& params, u32 block) {
  const u32 thread = machine::launch::thread_index();
  const u32 group = block / params.k_blocks;
  const u32 first_column = block % params.k_blocks * fast::block_k;
  const Global<u8> out = params.packed.offset(static_cast<i64>(block) * fast::block_bytes);
  u32 scales = 0;
  TH_UNROLL
  for (u32 half = 0; half < fast::halves; ++half) {
    machine::Vector<u32, 4> words{};
    TH_UNROLL
    for (u32 matrix = 0; matrix < 2; ++matrix) {
      const fast::Source from = fast::source(thread, half, matrix);
      const Matrix weights = Rows::matrix(params, from.up);
      const u32 row = Rows::row(group, from.up, from.output);
      const u32 column = first_column + from.column;
      const u32 code = magnitude_of_scale(weights, row, column / 16);
      const fast::PackedScale scale =
          fast::packed_scale(code == 0x7FU ? 0 : code, exponent_of_row(params, group, from.up, from.output));
      scales |= scale.byte << ((half * 2 + matrix) * 8);
      TH_UNROLL
      for (u32 i = 0; i < 16; i += 2) {
        const u32 codes = signed_codes(weights, row, column + i);
        words.at[i / 8 * 2 + matrix] |= fast::place(fast::packed_code(codes & 0xFU, scale), i % 8) |
                                        fast::place(fast::packed_code(codes >> 4, scale), i % 8 + 1);
      }
    }
    out.offset(half * fast::half_value_bytes).as<machine::Vector<u32, 4>>().store(thread, words);
  }
  out.offset(fast::block_value_bytes).as<u32>().store(thread, scales);
}

TH_KERNEL(128, 1) pack_fast_kernel(TH_GRID_CONSTANT const PackParams params) {
  pack_fast_block<GateAndUp>(params, machine::launch::block_index().x);
}

}  // namespace thresher::strategies::dual_gemm::packed
