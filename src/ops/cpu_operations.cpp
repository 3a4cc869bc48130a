// The operations on this CPU.
#include "cpu/dual_gemm.hpp"
#include "ops/device_operations.hpp"
#include "thresher/error.hpp"

#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

void require_exact(Numerics numerics) {
  if (numerics != Numerics::exact) {
    throw Error(ErrorCode::unsupported,
                "numerics fast is for NVFP4 weights on a Hopper GPU; the CPU computes exactly: use numerics exact");
  }
}

class CpuDualGemm final : public DualGemm::Backend {
 public:
  CpuDualGemm(const DualGemmProblem& problem, DeviceId device, const std::string& strategy,
              std::unique_ptr<const cpu::DualGemmKernel> kernel)
      : Backend(problem, device, strategy), kernel_(std::move(kernel)) {}
  void run_prepared(Stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    kernel_->run(a, c, workspace);
  }
  [[nodiscard]] std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  /// Elements lie where their type may lie.
  [[nodiscard]] std::size_t data_alignment() const override { return problem().out == Format::fp32 ? 4 : 2; }

 private:
  std::unique_ptr<const cpu::DualGemmKernel> kernel_;
};

/// The matrices of a file, kept as they are.
class LoadedWeights final : public PackedWeights::Storage {
 public:
  LoadedWeights(const Device& device, std::unique_ptr<const PackedContent> content)
      : Storage(device, view(*content, 0), view(*content, 1), content->numerics), content_(std::move(content)) {}

 private:
  std::unique_ptr<const PackedContent> content_;
};

class CpuOperations final : public DeviceOperations {
 public:
  [[nodiscard]] std::vector<std::string> dual_gemm_strategies() const override { return cpu::dual_gemm_strategies(); }

  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> pack(const Device& device, const Tensor& b1_gate,
                                                                   const Tensor& b2_up,
                                                                   const PackOptions& options) const override {
    require_exact(options.numerics);
    return std::make_shared<const PackedWeights::Storage>(device, b1_gate, b2_up, options.numerics);
  }

  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> restore(const Device& device,
                                                                      PackedContent content) const override {
    if (content.layout != matrices_layout) {
      throw Error(ErrorCode::unsupported,
                  "they were packed for a GPU (" + content.layout + "), and the CPU takes weights as they are");
    }
    return std::make_shared<const LoadedWeights>(device, std::make_unique<const PackedContent>(std::move(content)));
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_packed(const Device& device,
                                                                     const DualGemmProblem& problem,
                                                                     const PackedWeights& weights,
                                                                     const DualGemmOptions& options) const override {
    return plan_raw(device, problem, weights.storage().b1_gate(), weights.storage().b2_up(), options);
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_raw(const Device& device, const DualGemmProblem& problem,
                                                                  const Tensor& b1_gate, const Tensor& b2_up,
                                                                  const DualGemmOptions& options) const override {
    require_exact(options.numerics);
    const std::string strategy = options.strategy.empty() ? cpu::dual_gemm_strategies().front() : options.strategy;
    return std::make_shared<CpuDualGemm>(problem, device.id(), strategy,
                                         cpu::plan_dual_gemm(strategy, problem, b1_gate, b2_up, options.threads));
  }
};

}  // namespace

const DeviceOperations& cpu_operations() {
  static const CpuOperations operations;
  return operations;
}

}  // namespace thresher::ops
