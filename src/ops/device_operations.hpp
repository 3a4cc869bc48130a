#pragma once
/// The operations as one kind of device offers them. Arguments arrive validated (ops/validate.hpp).
#include <memory>
#include <string>
#include <vector>

#include "ops/backend.hpp"

namespace thresher::ops {

class DeviceOperations {
 public:
  virtual ~DeviceOperations() = default;

  /// Strategy names, the default first.
  [[nodiscard]] virtual std::vector<std::string> dual_gemm_strategies() const = 0;
  /// Why the strategy is not made for the problem's formats, in one sentence; empty when it is.
  [[nodiscard]] virtual std::string dual_gemm_format_obstacle(const Device&, const DualGemmProblem&,
                                                              const DualGemmOptions&) const {
    return "";
  }
  /// Why the strategy and knobs cannot run the problem whatever its tensors, in one sentence; empty when they can.
  [[nodiscard]] virtual std::string dual_gemm_obstacle(const Device&, const DualGemmProblem&,
                                                       const DualGemmOptions& /*options*/) const {
    return "";
  }
  [[nodiscard]] virtual std::shared_ptr<const PackedWeights::Storage> pack(const Device& device, const Tensor& b1_gate,
                                                                           const Tensor& b2_up,
                                                                           const PackOptions& options) const = 0;
  /// Weights as a file kept them. Throws Error(unsupported) when they were packed for another kind of device.
  [[nodiscard]] virtual std::shared_ptr<const PackedWeights::Storage> restore(const Device& device,
                                                                              PackedContent content) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const DualGemm::Backend> plan_packed(const Device& device,
                                                                             const DualGemmProblem& problem,
                                                                             const PackedWeights& weights,
                                                                             const DualGemmOptions& options) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const DualGemm::Backend> plan_raw(const Device& device,
                                                                          const DualGemmProblem& problem,
                                                                          const Tensor& b1_gate, const Tensor& b2_up,
                                                                          const DualGemmOptions& options) const = 0;
};

const DeviceOperations& operations_for(DeviceKind kind);

const DeviceOperations& cpu_operations();
const DeviceOperations& cuda_operations();

/// Throws Error(invalid_argument) naming the strategies there are when `strategy` is neither empty nor one of them.
void require_strategy(const DeviceOperations& operations, const std::string& strategy);

}  // namespace thresher::ops
