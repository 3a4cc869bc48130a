#pragma once
/// The fused dual GEMM in BF16 and FP16 on a Hopper GPU.
#include <memory>

#include "ops/backend.hpp"
#include "ops/cuda_dual_gemm_choice.hpp"
#include "ops/kernel_variant.hpp"

namespace thresher::ops {

/// The table's entry for GPU `ordinal`, with its own count of multiprocessors; a Hopper GPU that is not in the table
/// counts as an H100, any other as nothing.
std::optional<DeviceSpec> fused_device_spec(int ordinal);

/// `b1_gate` and `b2_up` live in the memory of `device` as long as `weights` (null: as long as the caller sees to it).
/// Nothing when no fused kernel takes the problem and none was asked for. Throws Error(unsupported) with the reason
/// when one was asked for.
std::shared_ptr<const DualGemm::Backend> make_cuda_dual_gemm(const Device& device, const DualGemmProblem& problem,
                                                             const Tensor& b1_gate, const Tensor& b2_up,
                                                             std::shared_ptr<const PackedWeights::Storage> weights,
                                                             const DualGemmOptions& options,
                                                             const KernelVariant& variant = {});

}  // namespace thresher::ops
