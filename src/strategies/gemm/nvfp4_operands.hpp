#pragma once
/// NVFP4 operands as device code reads them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/gemm/device/nvfp4.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies::gemm {

/// Weights [N,K], or the first expert's of a stack [E,N,K], whose scales lie as far apart as its rows do.
[[nodiscard]] Nvfp4Matrix weight_matrix(const Tensor& weights);
/// Bytes from the scales of one expert of a stack to those of the next.
[[nodiscard]] std::uint64_t expert_scale_bytes(const Tensor& stack);

/// Tokens [rows,K], or masked ones [E,capacity,K] row by row: NVFP4, or rows of 16 bits in `values`.
[[nodiscard]] Nvfp4Matrix token_matrix(const Tensor& tokens);

/// Adds the accesses of a launch that reads an operand, and its scales where it has them.
void add_reads(std::vector<Access>& accesses, std::size_t tensor, Format format, Access::Use use);

/// A launch that packs one matrix or two, and reads them, without what it writes and binds.
[[nodiscard]] KernelLaunch packing_launch(std::string title, DeviceProgram program, std::string kernel,
                                          std::uint32_t threads, int matrices);
/// The call that packs weights into the pieces `call.packed`. A change of the layout is another name.
void set_packing(std::string_view strategy, std::string layout, std::vector<Step> steps, PlannedCall& call);

/// Sets how far apart the operands of neighbouring experts lie.
template <class Params>
void set_expert_strides(const Tensor& gate, const Tensor& up, Params& params) {
  params.gate_value_bytes = static_cast<std::uint64_t>(weight_extents(gate).expert_stride / 2);
  params.gate_scale_bytes = expert_scale_bytes(gate);
  params.up_value_bytes = static_cast<std::uint64_t>(weight_extents(up).expert_stride / 2);
  params.up_scale_bytes = expert_scale_bytes(up);
}

}  // namespace thresher::strategies::gemm
