#pragma once
/// NVFP4 operands as device code reads them.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strategies/gemm/device/nvfp4.hpp"
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

}  // namespace thresher::strategies::gemm
