#pragma once
/// A planned dual GEMM on a GPU: the calls that its strategies planned, one for each number of rows.
#include <memory>

#include "ops/backend.hpp"
#include "ops/dual_gemm_choice.hpp"

namespace thresher::ops {

/// B1 and B2 on the GPU, or their shapes with what was packed of them.
struct CudaOperands {
  Tensor b1_gate;
  Tensor b2_up;
  void* packed = nullptr;
  std::shared_ptr<const PackedWeights::Storage> keeps{};  ///< their memory alive; null: the caller does
};

/// Why the call cannot read weights where they lie: `a`, which comes later, is not judged.
[[nodiscard]] std::string weights_obstacle(const strategies::PlannedCall& call, const Tensor& b1_gate,
                                           const Tensor& b2_up);

/// Loads every kernel of `calls`, whose rows ascend.
std::shared_ptr<const DualGemm::Backend> make_cuda_dual_gemm(const Device& device, const DualGemmProblem& problem,
                                                             std::vector<PlannedRows> calls, CudaOperands operands);

/// A matrix whose memory is not known yet.
[[nodiscard]] Tensor stand_in(Format format, std::int64_t rows, std::int64_t columns, DeviceId device);

}  // namespace thresher::ops
