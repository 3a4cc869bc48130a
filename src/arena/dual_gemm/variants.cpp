// Kernels of the dual GEMM that are made to be looked into.
#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/task.hpp"
#include "ops/kernel_variant.hpp"

namespace thresher::arena {
namespace {

/// One variant over rotating input sets.
class VariantRunner final : public Runner {
 public:
  VariantRunner(const Device& device, const DualGemmProblem& problem, const PlanRequest& request, Memory& memory,
                const std::vector<DeviceSet>& sets, const ops::KernelVariant& variant)
      : sets_(sets) {
    const DualGemmOptions options{.strategy = request.strategy, .knobs = Knobs::parse(request.knobs)};
    for (const DeviceSet& set : sets) {
      plans_.emplace_back(ops::plan_variant(device, problem, set.tensor("b1"), set.tensor("b2"), options, variant));
    }
    if (const std::size_t bytes = plans_.front().workspace_bytes(); bytes > 0) {
      workspace_ = std::make_unique<GuardedBuffer>(memory, bytes);
    }
  }

  void run(Stream stream, std::size_t set) override {
    plans_[set].run(stream, sets_[set].tensor("a"), sets_[set].tensor("c"), workspace_ ? workspace_->data() : nullptr);
  }
  [[nodiscard]] const std::string& strategy() const { return plans_.front().strategy(); }

 private:
  const std::vector<DeviceSet>& sets_;
  std::vector<DualGemm> plans_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

}  // namespace

PreparedVariant DualGemmOperation::prepare_variant(const Problem& problem, const PlanRequest& request,
                                                   const Device& device, Memory& memory,
                                                   const std::vector<DeviceSet>& sets,
                                                   const ops::KernelVariant& variant) const {
  auto runner = std::make_unique<VariantRunner>(device, dual_gemm(problem), request, memory, sets, variant);
  std::string strategy = runner->strategy();
  return {std::move(runner), std::move(strategy)};
}

}  // namespace thresher::arena
