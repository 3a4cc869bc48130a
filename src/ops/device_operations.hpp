#pragma once
/// The operations as one kind of device offers them. Arguments arrive validated (ops/validate.hpp).
#include <memory>

#include "ops/backend.hpp"
#include "ops/grouped_backend.hpp"

namespace thresher::ops {

class DeviceOperations {
 public:
  virtual ~DeviceOperations() = default;

  [[nodiscard]] virtual std::shared_ptr<const PackedWeights::Storage> pack(const Device& device, const Tensor& b1_gate,
                                                                           const Tensor& b2_up,
                                                                           const PackOptions& options) const = 0;
  /// Weights as a file or a block kept them. Throws Error(unsupported) when they were packed for another kind of
  /// device.
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

  /// The grouped products.
  [[nodiscard]] virtual std::shared_ptr<const PackedGroupedWeights::Storage> pack(const Device& device,
                                                                                  const GroupedWeights& weights,
                                                                                  const PackOptions& options) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const PackedGroupedWeights::Storage> restore_grouped(
      const Device& device, PackedContent content) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const GroupedGemm::Backend> plan_packed(const Device& device,
                                                                                const GroupedProblem& problem,
                                                                                const PackedGroupedWeights& weights,
                                                                                const GroupedOptions& options,
                                                                                Bounds bounds) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const GroupedGemm::Backend> plan_raw(const Device& device,
                                                                             const GroupedProblem& problem,
                                                                             const GroupedWeights& weights,
                                                                             const GroupedOptions& options,
                                                                             Bounds bounds) const = 0;
};

const DeviceOperations& operations_for(DeviceKind kind);

const DeviceOperations& cpu_operations();
const DeviceOperations& cuda_operations();

}  // namespace thresher::ops
