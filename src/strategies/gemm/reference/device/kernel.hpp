#pragma once
/// The float64 definition of the dual GEMM (src/reference/dual_gemm.hpp) as a plain GPU kernel, to judge large problems
/// by.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/shared.hpp"
#include "strategies/gemm/device/definition.hpp"
#include "strategies/gemm/reference/params.hpp"

namespace thresher::strategies::gemm::reference {

using namespace definition;

/// One element without its tensor's global scale.
TH_DEVICE double element(const Operand& operand, u32 row, u32 k, u32 columns) {
  const i64 index = row * operand.row_stride + k;
  switch (operand.format) {
    case OperandFormat::fp16: return convert::to_float(Global<Half>{operand.values}.load(index));
    case OperandFormat::bf16: return convert::to_float(Global<BFloat16>{operand.values}.load(index));
    case OperandFormat::nvfp4: break;
  }
  const u64 scale_at = scale_offset(operand.scales_blocked != 0, row, k / 16, columns / 16);
  const double scale = e4m3_to_float(Global<u8>{operand.scales}.load(static_cast<i64>(scale_at)));
  const u32 both = Global<u8>{operand.values}.load(index / 2);
  return scale * static_cast<double>(e2m1_to_float(k % 2 == 0 ? both : both >> 4));
}

TH_DEVICE double element_or_zero(const Operand& operand, u32 row, u32 rows, u32 k, u32 columns) {
  return row < rows && k < columns ? element(operand, row, k, columns) : 0.0;
}

/// Float32 decides where NaN and Inf go, float64 gives every finite value.
TH_DEVICE double output_element(const Parameters& parameters, double gate, double up) {
  const auto kind = static_cast<ActivationCode>(parameters.activation);
  const ActivationConstants constants{parameters.alpha, parameters.limit, parameters.up_offset};
  const float in_float32 = activate(kind, static_cast<float>(gate), static_cast<float>(up), constants);
  return math::is_finite(in_float32) ? activate(kind, gate, up, constants) : static_cast<double>(in_float32);
}

/// Block (x, y) computes columns from x·tile and rows from y·tile. Thread t loads element (t/tile, t%tile) of each tile
/// and computes output (t/tile, t%tile). K ascends, so products are added in the definition's order, in Real, which is
/// double.
template <typename Real>
TH_KERNEL(threads, 1)
dual_gemm(TH_GRID_CONSTANT const Parameters parameters) {
  const u32 tile_row = launch::thread_index() / tile;
  const u32 tile_column = launch::thread_index() % tile;
  const u32 row = launch::block_index().y * tile + tile_row;
  const u32 first_column = launch::block_index().x * tile;
  constexpr u32 pitch = tile + 1;
  const Shared<Real> a_tile = launch::shared_memory().as<Real>();
  const Shared<Real> gate_tile = a_tile.offset(tile * pitch);
  const Shared<Real> up_tile = gate_tile.offset(tile * pitch);
  Real gate = 0;
  Real up = 0;
  for (u32 first_k = 0; first_k < parameters.k; first_k += tile) {
    const u32 k = first_k + tile_column;
    const u32 slot = tile_row * pitch + tile_column;
    a_tile.store(slot, element_or_zero(parameters.a, row, parameters.m, k, parameters.k));
    gate_tile.store(slot, element_or_zero(parameters.b1_gate, first_column + tile_row, parameters.n, k, parameters.k));
    up_tile.store(slot, element_or_zero(parameters.b2_up, first_column + tile_row, parameters.n, k, parameters.k));
    block::sync();
    for (u32 i = 0; i < tile && first_k + i < parameters.k; ++i) {
      const Real left = a_tile.load(tile_row * pitch + i);
      gate += left * gate_tile.load(tile_column * pitch + i);
      up += left * up_tile.load(tile_column * pitch + i);
    }
    block::sync();
  }
  const u32 column = first_column + tile_column;
  if (row < parameters.m && column < parameters.n) {
    const double a_scale = global_scale(parameters.a.global_scale);
    gate = gate * a_scale * static_cast<double>(global_scale(parameters.b1_gate.global_scale));
    up = up * a_scale * static_cast<double>(global_scale(parameters.b2_up.global_scale));
    Global<Real>{parameters.out}.store(static_cast<i64>(row) * parameters.n + column,
                                       output_element(parameters, gate, up));
  }
}

}  // namespace thresher::strategies::gemm::reference
