#pragma once
/// NVFP4 weights into row tiles, once, when a model is loaded.
#include "machine/launch.hpp"
#include "strategies/dual_gemm/tcgen05/device/layout.hpp"
#include "strategies/gemm/device/nvfp4.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

using namespace gemm;

using machine::Global;
using machine::i64;
using Matrix = Nvfp4Matrix;

struct PackParams {
  Matrix gate;
  Matrix up;
  Global<u8> codes;   ///< packed_code_bytes
  Global<u8> scales;  ///< packed_scale_bytes
  u32 k_steps = 0;
};

inline constexpr u32 pack_threads = 256;

/// 16 codes and their scale, its sign moved into them; zeros beyond the matrix.
struct ScaledGroup {
  machine::Vector<u32, 2> codes;
  u32 scale;
};
TH_DEVICE ScaledGroup scaled_group(const Matrix& matrix, u32 row, u32 column) {
  if (row >= matrix.rows || column >= matrix.scale_columns) {
    return {};
  }
  ScaledGroup group{group_codes(matrix, row, column), scale_code(matrix, row, column)};
  const u32 signs = (group.scale & 0x80U) != 0 ? 0x88888888U : 0;
  group.codes.at[0] ^= signs;
  group.codes.at[1] ^= signs;
  group.scale &= 0x7FU;
  return group;
}

/// What the rows of a tile are: gate and up as layout.hpp has them, or outputs of one matrix in their order.
struct GateAndUp {
  static constexpr u32 outputs = tile_rows_outputs;
  static TH_DEVICE constexpr Source source_of(u32 row) { return source(row); }
};
struct OneMatrix {
  static constexpr u32 outputs = tile_rows;
  static TH_DEVICE constexpr Source source_of(u32 row) { return {false, row}; }
};

/// One block of threads makes one block of 128 rows by 256 along K, and its scales.
template <class Rows>
TH_DEVICE void pack_block(const PackParams& params, u32 block) {
  constexpr u32 columns = slot_k / 16;
  const u32 tile = block / params.k_steps;
  const u32 first_column = (block - tile * params.k_steps) * columns;
  const Global<u8> codes = params.codes.offset(static_cast<i64>(block) * weight_block_bytes);
  const Global<u8> scales = params.scales.offset(static_cast<i64>(block) * weight_scale_bytes);
  for (u32 i = machine::launch::thread_index(); i < tile_rows * columns; i += pack_threads) {
    const u32 row = i / columns;
    const u32 column = i % columns;
    const Source from = Rows::source_of(row);
    const ScaledGroup group =
        scaled_group(from.up ? params.up : params.gate, tile * Rows::outputs + from.output, first_column + column);
    codes.as<machine::Vector<u32, 2>>().store(i, group.codes);
    scales.store(column / 4 * scale_block_bytes + scale_byte(row, column), static_cast<u8>(group.scale));
  }
}

/// The grid has row_tiles · k_steps.
TH_KERNEL(pack_threads, 1) pack_kernel(TH_GRID_CONSTANT const PackParams params) {
  pack_block<GateAndUp>(params, machine::launch::block_index().x);
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
