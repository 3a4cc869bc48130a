#pragma once
/// NVFP4 weights into the packed layouts, once, when a model is loaded: of one matrix, or of all experts, one behind
/// the other.
#include "machine/launch.hpp"
#include "machine/numbers.hpp"
#include "machine/warp.hpp"
#include "strategies/gemm/device/nvfp4.hpp"
#include "strategies/gemm/wgmma_dequant/device/fast_layout.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

namespace fast {

/// A scale's byte: code, and whether 1.5 times it lies five codes above.
TH_DEVICE constexpr u32 scale_byte(u32 code) {
  const u32 mantissa = code % 8;
  return code | (mantissa >= 1 && mantissa <= 5 ? 0x80U : 0U);
}

/// How a group of 16 is packed: its scale's byte, and the factor of its values before they are rounded again. The
/// factor is 1 for values that stay as they are.
struct PackedScale {
  u32 byte;
  float rescale;
};

/// `code` without its sign and not NaN, in a row multiplied by 2^exponent.
TH_DEVICE PackedScale packed_scale(u32 code, int exponent) {
  if (code == 0) {
    return {scale_byte(smallest_scale_code), 0.0F};
  }
  const int moved = extended_code(code) + 8 * exponent;
  if (moved >= static_cast<int>(smallest_scale_code)) {
    return {scale_byte(static_cast<u32>(moved)), 1.0F};
  }
  const float scale = machine::convert::to_float(
      machine::Half{static_cast<machine::u16>(machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(code)))});
  return {scale_byte(smallest_scale_code), scale * power_of_two(exponent + 5)};
}

/// A code (with its scale's sign moved in) as it is packed.
TH_DEVICE u32 packed_code(u32 code, const PackedScale& scale) {
  if (scale.rescale == 1.0F) {
    return code;
  }
  const u32 magnitude = code & 7U;
  // Twice the values 0, 0.5, 1, 1.5, 2, 3, 4, 6.
  const float value = static_cast<float>(0xC8643210U >> (4 * magnitude) & 0xFU) * 0.5F;
  return nearest_magnitude(value * scale.rescale) | (code & 8U);
}

}  // namespace fast

struct PackParams {
  Nvfp4Matrix gate;
  Nvfp4Matrix up;
  Global<u8> packed;
  Global<float> row_factors;  ///< fast only
  u32 k_blocks = 0;           ///< blocks of weights along K
  u32 output_groups = 0;
};

/// Which rows a block holds as gate and up.
struct GateAndUp {
  static TH_DEVICE Nvfp4Matrix matrix(const PackParams& params, bool up) { return up ? params.up : params.gate; }
  static TH_DEVICE u32 row(u32 group, bool, u32 output) { return group * block_outputs + output; }
};
/// One matrix: a warp's eight gate rows and eight up rows are 16 of its rows, one behind the other.
struct OneMatrix {
  static TH_DEVICE Nvfp4Matrix matrix(const PackParams& params, bool) { return params.gate; }
  static TH_DEVICE u32 row(u32 group, bool up, u32 output) {
    return group * 2 * block_outputs + output / 8 * 16 + (up ? 8 : 0) + output % 8;
  }
};

/// The two codes from `column` (even) of a row, beyond the matrix zero, with the sign of their scale moved into them.
/// No magnitude stays where the scale is zero.
TH_DEVICE u32 signed_codes(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  if (row >= matrix.rows || column / 16 >= matrix.scale_columns) {
    return 0;
  }
  const u32 codes = matrix.values.load(static_cast<i64>(row) * matrix.row_bytes + column / 2);
  const u32 scale = scale_code(matrix, row, column / 16);
  const u32 kept = (scale & 0x7FU) == 0 ? codes & 0x88U : codes;
  return (scale & 0x80U) != 0 ? kept ^ 0x88U : kept;
}

TH_DEVICE u32 magnitude_of_scale(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  return row >= matrix.rows || column >= matrix.scale_columns ? 0 : scale_code(matrix, row, column) & 0x7FU;
}

/// Bits 14:7 of a scale in fp16, from its code without the sign. The other bits are zero, but those of NaN.
TH_DEVICE u8 stored_scale(u32 code) {
  constexpr u32 nan_code = 0x7F;
  const u32 half = machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(code));
  return static_cast<u8>(code == nan_code ? 0xFFU : half >> 7);
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
        out.store(block_value_bytes + scale_byte(up, thread, step), stored_scale(code));
      }
    }
  }
}

/// A warp finds the factor of one row: 2^-e, NaN when the row has a NaN scale, 1 beyond the matrix.
template <class Rows>
TH_DEVICE void find_row_factor(const PackParams& params, u32 index) {
  const u32 lane = machine::warp::lane();
  const bool up = index % fast::group_factors >= block_outputs;
  const u32 row = Rows::row(index / fast::group_factors, up, index % block_outputs);
  const Nvfp4Matrix matrix = Rows::matrix(params, up);
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
      const Nvfp4Matrix weights = Rows::matrix(params, from.up);
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

/// A launch makes packed weights of either numerics, or the rows' factors, which `fast` reads.
enum class Packing : u8 { exact, factors, fast };

template <Packing packing, class Rows>
TH_DEVICE void pack(const PackParams& params, u32 block) {
  if constexpr (packing == Packing::exact) {
    pack_block<Rows>(params, block);
  } else if constexpr (packing == Packing::factors) {
    find_row_factor<Rows>(params, block * 4 + machine::warp::index());
  } else {
    pack_fast_block<Rows>(params, block);
  }
}

template <Packing packing>
TH_KERNEL(128, 1)
pack_kernel(TH_GRID_CONSTANT const PackParams params) {
  pack<packing, GateAndUp>(params, machine::launch::block_index().x);
}

struct PackExpertsParams {
  PackParams first;          ///< of the first expert
  u64 gate_value_bytes = 0;  ///< from one expert to the next
  u64 gate_scale_bytes = 0;
  u64 up_value_bytes = 0;
  u64 up_scale_bytes = 0;
  u64 packed_bytes = 0;
  u32 expert_blocks = 0;   ///< thread blocks for an expert
  u32 expert_factors = 0;  ///< fast only
};

/// The parameters of one expert.
TH_DEVICE PackParams of_expert(const PackExpertsParams& params, u32 expert) {
  const auto behind = [&](u64 bytes) { return static_cast<i64>(expert * bytes); };
  PackParams own = params.first;
  own.gate.values = own.gate.values.offset(behind(params.gate_value_bytes));
  own.gate.scales = own.gate.scales.offset(behind(params.gate_scale_bytes));
  own.up.values = own.up.values.offset(behind(params.up_value_bytes));
  own.up.scales = own.up.scales.offset(behind(params.up_scale_bytes));
  own.packed = own.packed.offset(behind(params.packed_bytes));
  own.row_factors = own.row_factors.offset(behind(params.expert_factors));
  return own;
}

template <Packing packing, int matrices>
TH_KERNEL(128, 1)
pack_experts_kernel(TH_GRID_CONSTANT const PackExpertsParams params) {
  const u32 expert = machine::launch::block_index().x / params.expert_blocks;
  const u32 block = machine::launch::block_index().x % params.expert_blocks;
  const PackParams own = of_expert(params, expert);
  if constexpr (matrices == 2) {
    pack<packing, GateAndUp>(own, block);
  } else {
    pack<packing, OneMatrix>(own, block);
  }
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
