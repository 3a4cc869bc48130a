// The operations on an NVIDIA GPU.
#include "ops/cuda_device_spec.hpp"
#include "ops/cuda_dual_gemm.hpp"
#include "ops/cuda_grouped_gemm.hpp"
#include "ops/cuda_packed_weights.hpp"
#include "ops/cuda_weights.hpp"
#include "ops/device_memory.hpp"
#include "ops/device_operations.hpp"
#include "ops/dual_gemm_choice.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::PlannedCall;

/// What weights alone say of a problem.
DualGemmProblem problem_of(Format format, std::int64_t n, std::int64_t k) {
  return {.m = 1, .n = std::max<std::int64_t>(n, 1), .k = k, .a = format, .b = format};
}

DualGemmRequest request_of(Numerics numerics) {
  DualGemmRequest request;
  ask_for(numerics, request.knobs);
  return request;
}

/// How weights are packed, by the strategy that `plan` would choose for them.
PlannedCall packing_choice(const Device& device, Format format, std::int64_t n, std::int64_t k, Numerics numerics) {
  return choose_dual_gemm(problem_of(format, n, k), request_of(numerics), DeviceKind::cuda, spec_of(device));
}

void require_pair_on_gpu(const Device& device, const Tensor& b1_gate, const Tensor& b2_up) {
  require_matrix_on_gpu(b1_gate, device.id().ordinal, "b1 (gate)");
  require_matrix_on_gpu(b2_up, device.id().ordinal, "b2 (up)");
}

class CudaOperations final : public DeviceOperations {
 public:
  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> pack(const Device& device, const Tensor& b1_gate,
                                                                   const Tensor& b2_up,
                                                                   const PackOptions& options) const override {
    require_pair_on_gpu(device, b1_gate, b2_up);
    const PlannedCall call =
        packing_choice(device, b1_gate.format, b1_gate.shape[0], b1_gate.shape[1], options.numerics);
    if (call.packing != nullptr) {
      return packed_by(device, b1_gate, b2_up, options.numerics, call);
    }
    return std::make_shared<const CudaWeights>(device, b1_gate, b2_up, options.numerics);
  }

  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> restore(const Device& device,
                                                                      PackedContent content) const override {
    if (content.layout == matrices_layout && content.on_device) {
      return std::make_shared<const SeenWeights>(device, view(content, 0, device.id()), view(content, 1, device.id()),
                                                 content.numerics);
    }
    if (content.layout == matrices_layout) {
      const DeviceTensor gate(view(content, 0), device);
      const DeviceTensor up(view(content, 1), device);
      return pack(device, gate.tensor(), up.tensor(), {.numerics = content.numerics});
    }
    const PlannedCall call = packing_choice(device, content.format, content.n, content.k, content.numerics);
    if (content.layout != call.packed_layout) {
      throw Error(ErrorCode::unsupported, "they were packed in the layout " + content.layout + ", which " +
                                              device.name() + " does not read: pack them again for this device");
    }
    return std::make_shared<const CudaPackedWeights>(device, content, call);
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_packed(const Device& device,
                                                                     const DualGemmProblem& problem,
                                                                     const PackedWeights& weights,
                                                                     const DualGemmOptions& options) const override {
    const auto packed = std::dynamic_pointer_cast<const CudaPackedWeights>(weights.shared());
    const Tensor& b1_gate = weights.storage().b1_gate();
    const Tensor& b2_up = weights.storage().b2_up();
    if (packed == nullptr) {
      return plan_matrices(device, problem, b1_gate, b2_up, weights.shared(), options);
    }
    DualGemmOptions of_weights = options;
    ask_for(packed->numerics(), of_weights.knobs);
    const auto obstacle = [&](const PlannedCall& call) {
      return call.packed_layout == packed->layout()
                 ? std::string()
                 : "strategy " + call.strategy +
                       " does not read weights as these were packed: plan it from b1 and b2, or leave the strategy "
                       "empty";
    };
    return make_cuda_dual_gemm(device, problem, planned_calls(device, problem, of_weights, obstacle),
                               {b1_gate, b2_up, packed->packed(), packed});
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_raw(const Device& device, const DualGemmProblem& problem,
                                                                  const Tensor& b1_gate, const Tensor& b2_up,
                                                                  const DualGemmOptions& options) const override {
    return plan_matrices(device, problem, b1_gate, b2_up, nullptr, options);
  }

  [[nodiscard]] std::shared_ptr<const PackedGroupedWeights::Storage> pack(const Device& device,
                                                                          const GroupedWeights& weights,
                                                                          const PackOptions& options) const override {
    return pack_on_gpu(device, weights, options);
  }
  [[nodiscard]] std::shared_ptr<const PackedGroupedWeights::Storage> restore_grouped(
      const Device& device, PackedContent content) const override {
    return restore_on_gpu(device, content);
  }
  [[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_packed(const Device& device,
                                                                        const GroupedProblem& problem,
                                                                        const PackedGroupedWeights& weights,
                                                                        const GroupedOptions& options,
                                                                        Bounds bounds) const override {
    return plan_packed_on_gpu(device, problem, weights, options, bounds);
  }
  [[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_raw(const Device& device,
                                                                     const GroupedProblem& problem,
                                                                     const GroupedWeights& weights,
                                                                     const GroupedOptions& options,
                                                                     Bounds bounds) const override {
    return plan_raw_on_gpu(device, problem, weights, options, bounds);
  }

 private:
  static std::shared_ptr<const CudaPackedWeights> packed_by(const Device& device, const Tensor& b1_gate,
                                                            const Tensor& b2_up, Numerics numerics,
                                                            const PlannedCall& call) {
    return std::make_shared<const CudaPackedWeights>(device, b1_gate, b2_up, numerics, call);
  }

  /// What a strategy packs is packed here, at plan time.
  static std::shared_ptr<const DualGemm::Backend> plan_matrices(
      const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up,
      const std::shared_ptr<const PackedWeights::Storage>& weights, const DualGemmOptions& options) {
    require_pair_on_gpu(device, b1_gate, b2_up);
    const auto obstacle = [&](const PlannedCall& call) { return weights_obstacle(call, b1_gate, b2_up); };
    std::vector<PlannedRows> calls = planned_calls(device, problem, options, obstacle);
    CudaOperands operands{b1_gate, b2_up, nullptr, weights};
    if (const PlannedCall& call = calls.back().call; call.packing != nullptr) {
      const auto packed = packed_by(device, b1_gate, b2_up, numerics_of(call.knobs), call);
      operands = {packed->b1_gate(), packed->b2_up(), packed->packed(), packed};
    }
    return make_cuda_dual_gemm(device, problem, std::move(calls), std::move(operands));
  }
};

}  // namespace

const DeviceOperations& cuda_operations() {
  static const CudaOperations operations;
  return operations;
}

}  // namespace thresher::ops
