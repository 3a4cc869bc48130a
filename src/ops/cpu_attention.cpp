#include "cpu/attention.hpp"
#include "ops/attention_backend.hpp"

namespace thresher::ops {
namespace {

class CpuAttention final : public Attention::Backend {
 public:
  CpuAttention(const AttentionProblem& problem, DeviceId device, int threads)
      : Backend(problem, device, "blockwise"), threads_(threads) {}
  void run(Stream, const AttentionTensors& tensors, void*) const override {
    cpu::attention(problem(), tensors, threads_);
  }
  [[nodiscard]] std::size_t workspace_bytes() const override { return 0; }

 private:
  int threads_;
};

class CpuAttentionOperations final : public AttentionOperations {
 public:
  [[nodiscard]] std::vector<std::string> strategies() const override { return {"blockwise"}; }
  [[nodiscard]] std::string obstacle(const Device&, const AttentionProblem&, const AttentionOptions&) const override {
    return "";
  }
  [[nodiscard]] std::shared_ptr<const Attention::Backend> plan(const Device& device, const AttentionProblem& problem,
                                                               const AttentionOptions& options) const override {
    return std::make_shared<CpuAttention>(problem, device.id(), options.threads);
  }
};

}  // namespace

const AttentionOperations& cpu_attention_operations() {
  static const CpuAttentionOperations operations;
  return operations;
}

}  // namespace thresher::ops
