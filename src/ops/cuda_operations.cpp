// The operations on an NVIDIA GPU.
#include "ops/cuda_two_pass.hpp"
#include "ops/cuda_weights.hpp"
#include "ops/device_operations.hpp"

namespace thresher::ops {
namespace {

class CudaOperations final : public DeviceOperations {
 public:
  [[nodiscard]] std::vector<std::string> dual_gemm_strategies() const override { return {"two_pass"}; }

  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> pack(const Device& device, const Tensor& b1_gate,
                                                                   const Tensor& b2_up,
                                                                   const PackOptions& options) const override {
    require_matrix_on_gpu(b1_gate, device.id().ordinal, "b1 (gate)");
    require_matrix_on_gpu(b2_up, device.id().ordinal, "b2 (up)");
    return std::make_shared<const CudaWeights>(device, b1_gate, b2_up, options.numerics);
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_packed(const Device& device,
                                                                     const DualGemmProblem& problem,
                                                                     const PackedWeights& weights,
                                                                     const PlanOptions&) const override {
    return make_cuda_two_pass(device, problem, weights.storage().b1_gate(), weights.storage().b2_up(),
                              weights.shared());
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_raw(const Device& device, const DualGemmProblem& problem,
                                                                  const Tensor& b1_gate, const Tensor& b2_up,
                                                                  const PlanOptions&) const override {
    return make_cuda_two_pass(device, problem, b1_gate, b2_up, nullptr);
  }
};

}  // namespace

const DeviceOperations& cuda_operations() {
  static const CudaOperations operations;
  return operations;
}

}  // namespace thresher::ops
