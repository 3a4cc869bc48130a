#pragma once
/// `two_pass` on a GPU: widen the operands, two cuBLASLt products into float32, then the activation. The baseline that
/// the fused strategies are measured against, and what runs every mix of formats.
#include <memory>

#include "ops/backend.hpp"

namespace thresher::ops {

/// `b1_gate` and `b2_up` live in the memory of `device` as long as `weights` (null: as long as the caller sees to it).
std::shared_ptr<const DualGemm::Backend> make_cuda_two_pass(const Device& device, const DualGemmProblem& problem,
                                                            const Tensor& b1_gate, const Tensor& b2_up,
                                                            std::shared_ptr<const PackedWeights::Storage> weights);

}  // namespace thresher::ops
