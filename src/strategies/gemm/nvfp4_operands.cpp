#include "strategies/gemm/nvfp4_operands.hpp"

#include <memory>
#include <utility>

namespace thresher::strategies::gemm {
namespace {

/// The last two dimensions.
Nvfp4Matrix last_matrix(const Tensor& tensor) {
  const int row = tensor.rank - 2;
  Nvfp4Matrix matrix;
  matrix.values = {device_address(tensor.data)};
  matrix.scales = {device_address(tensor.scales.data)};
  matrix.row_bytes = static_cast<u64>(tensor.strides[row] * thresher::bits(tensor.format) / 8);
  matrix.rows = narrow(tensor.shape[row]);
  matrix.scale_columns = narrow(tensor.shape[row + 1] / 16);
  matrix.scale_stride = matrix.scale_columns;
  matrix.scales_blocked = tensor.scales.layout == ScaleLayout::blocked ? 1 : 0;
  return matrix;
}

}  // namespace

Nvfp4Matrix weight_matrix(const Tensor& weights) {
  Nvfp4Matrix matrix = last_matrix(weights);
  if (weights.rank == 3) {
    matrix.scale_stride = narrow(weights.strides[1] / 16);
  }
  return matrix;
}

std::uint64_t expert_scale_bytes(const Tensor& stack) {
  return stack.scales.layout == ScaleLayout::blocked ? scale_bytes(stack.shape[1], stack.shape[2], ScaleLayout::blocked)
                                                     : static_cast<std::uint64_t>(stack.strides[0] / 16);
}

Nvfp4Matrix token_matrix(const Tensor& tokens) {
  Nvfp4Matrix matrix = last_matrix(tokens);
  if (tokens.rank == 3) {
    matrix.rows = narrow(tokens.shape[0] * tokens.shape[1]);
    if (tokens.format == Format::nvfp4 && tokens.scales.layout == ScaleLayout::blocked) {
      matrix.slot_rows = narrow(tokens.shape[1]);
      matrix.slot_scales =
          narrow(static_cast<std::int64_t>(scale_bytes(tokens.shape[1], tokens.shape[2], ScaleLayout::blocked)));
    }
  }
  return matrix;
}

void add_reads(std::vector<Access>& accesses, std::size_t tensor, Format format, Access::Use use) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  if (format == Format::nvfp4) {
    accesses.push_back({Access::Memory::scales, tensor, use});
  }
}

KernelLaunch packing_launch(std::string title, DeviceProgram program, std::string kernel, std::uint32_t threads,
                            int matrices) {
  KernelLaunch launch = preparation_launch(std::move(title), std::move(program), std::move(kernel), threads);
  add_reads(launch.accesses, gate_index, Format::nvfp4, Access::Use::reads);
  if (matrices == 2) {
    add_reads(launch.accesses, up_index, Format::nvfp4, Access::Use::reads);
  }
  return launch;
}

void set_packing(std::string_view strategy, std::string layout, std::vector<Step> steps, PlannedCall& call) {
  PlannedCall packing;
  packing.strategy = strategy;
  packing.packed = call.packed;
  packing.steps = std::move(steps);
  call.packing = std::make_shared<const PlannedCall>(std::move(packing));
  call.packed_layout = std::move(layout);
}

}  // namespace thresher::strategies::gemm
