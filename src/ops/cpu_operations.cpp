// The operations on this CPU.
#include <algorithm>
#include <array>

#include "ops/device_operations.hpp"
#include "ops/dual_gemm_choice.hpp"
#include "ops/grouped_choice.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

void require_exact(Numerics numerics) {
  if (numerics != Numerics::exact) {
    throw Error(
        ErrorCode::unsupported,
        "numerics fast is for NVFP4 and FP8 weights on a Hopper GPU; the CPU computes exactly: use numerics exact");
  }
}

/// The one for so many rows.
const strategies::PlannedCall& call_for(const std::vector<PlannedRows>& calls, std::int64_t rows) {
  return std::find_if(calls.begin(), calls.end(), [&](const PlannedRows& one) { return one.rows >= rows; })->call;
}

void run_steps(const strategies::PlannedCall& call, const strategies::CallTensors& tensors) {
  for (const strategies::Step& step : call.steps) {
    std::get<strategies::HostCall>(step).call(tensors);
  }
}

/// What its strategies planned, one call for each number of rows.
class CpuDualGemm final : public DualGemm::Backend {
 public:
  /// `weights` own B1 and B2; null: the caller does.
  CpuDualGemm(const DualGemmProblem& problem, DeviceId device, std::vector<PlannedRows> calls, const Tensor& b1_gate,
              const Tensor& b2_up, std::shared_ptr<const PackedWeights::Storage> weights)
      : Backend(problem, device, calls.back().call.strategy),
        calls_(std::move(calls)),
        b1_gate_(b1_gate),
        b2_up_(b2_up),
        weights_(std::move(weights)) {
    for (const PlannedRows& planned : calls_) {
      workspace_bytes_ = std::max(workspace_bytes_, planned.call.workspace_bytes());
      data_alignment_ = std::max(data_alignment_, planned.call.data_alignment);
    }
  }

  void run_prepared(Stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    const std::array<Tensor, strategies::gemm::dense_tensor_count> all{a, b1_gate_, b2_up_, c};
    run_steps(call_for(calls_, a.shape[0]), {all, workspace});
  }
  [[nodiscard]] std::size_t workspace_bytes() const override { return workspace_bytes_; }
  [[nodiscard]] std::size_t data_alignment() const override { return data_alignment_; }

 private:
  std::vector<PlannedRows> calls_;
  Tensor b1_gate_;
  Tensor b2_up_;
  std::shared_ptr<const PackedWeights::Storage> weights_;
  std::size_t workspace_bytes_ = 0;
  std::size_t data_alignment_ = 1;
};

/// What a strategy planned of a grouped product, whatever the rows.
class CpuGroupedGemm final : public GroupedGemm::Backend {
 public:
  /// `storage` owns the weights; null: the caller does.
  CpuGroupedGemm(const GroupedProblem& problem, DeviceId device, strategies::PlannedCall call,
                 const GroupedWeights& weights, std::shared_ptr<const PackedGroupedWeights::Storage> storage,
                 Bounds bounds)
      : Backend(problem, device, call.strategy, weights, bounds),
        call_(std::move(call)),
        views_(weight_views(weights)),
        storage_(std::move(storage)) {}

  void run(Stream, const GroupedTensors& tensors, const strategies::moe_layer::RoutedTensors& routed,
           void* workspace) const override {
    const auto all = strategies::moe_layer::in_order(views_, tensors, routed);
    run_steps(call_, {all, workspace});
  }
  [[nodiscard]] GroupedStatus status(Stream, const void* workspace) const override {
    const std::size_t bytes = call_.workspace[strategies::grouped_gemm::status_piece].bytes;
    return {strategies::flags_in({static_cast<const std::uint32_t*>(workspace), bytes / sizeof(std::uint32_t)})};
  }
  [[nodiscard]] std::size_t workspace_bytes() const override { return call_.workspace_bytes(); }
  [[nodiscard]] std::size_t data_alignment() const override { return call_.data_alignment; }

 private:
  strategies::PlannedCall call_;
  WeightViews views_;
  std::shared_ptr<const PackedGroupedWeights::Storage> storage_;
};

/// The matrices of a file or a block, kept as they are.
class LoadedWeights final : public PackedWeights::Storage {
 public:
  LoadedWeights(const Device& device, std::unique_ptr<const PackedContent> content)
      : Storage(device, view(*content, 0), view(*content, 1), content->numerics), content_(std::move(content)) {}

 private:
  std::unique_ptr<const PackedContent> content_;
};

class LoadedGroupedWeights final : public PackedGroupedWeights::Storage {
 public:
  LoadedGroupedWeights(const Device& device, std::unique_ptr<const PackedContent> content)
      : Storage(device, grouped_view(*content), content->numerics), content_(std::move(content)) {}

 private:
  std::unique_ptr<const PackedContent> content_;
};

void require_matrices(const PackedContent& content) {
  if (content.layout != matrices_layout) {
    throw Error(ErrorCode::unsupported,
                "they were packed for a GPU (" + content.layout + "), and the CPU takes weights as they are");
  }
}

class CpuOperations final : public DeviceOperations {
 public:
  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> pack(const Device& device, const Tensor& b1_gate,
                                                                   const Tensor& b2_up,
                                                                   const PackOptions& options) const override {
    require_exact(options.numerics);
    return std::make_shared<const PackedWeights::Storage>(device, b1_gate, b2_up, options.numerics);
  }

  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> restore(const Device& device,
                                                                      PackedContent content) const override {
    require_matrices(content);
    return std::make_shared<const LoadedWeights>(device, std::make_unique<const PackedContent>(std::move(content)));
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_packed(const Device& device,
                                                                     const DualGemmProblem& problem,
                                                                     const PackedWeights& weights,
                                                                     const DualGemmOptions& options) const override {
    return planned(device, problem, weights.storage().b1_gate(), weights.storage().b2_up(), weights.shared(), options);
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_raw(const Device& device, const DualGemmProblem& problem,
                                                                  const Tensor& b1_gate, const Tensor& b2_up,
                                                                  const DualGemmOptions& options) const override {
    return planned(device, problem, b1_gate, b2_up, nullptr, options);
  }

  [[nodiscard]] std::shared_ptr<const PackedGroupedWeights::Storage> pack(const Device& device,
                                                                          const GroupedWeights& weights,
                                                                          const PackOptions& options) const override {
    require_exact(options.numerics);
    return std::make_shared<const PackedGroupedWeights::Storage>(device, weights, options.numerics);
  }

  [[nodiscard]] std::shared_ptr<const PackedGroupedWeights::Storage> restore_grouped(
      const Device& device, PackedContent content) const override {
    require_matrices(content);
    return std::make_shared<const LoadedGroupedWeights>(device,
                                                        std::make_unique<const PackedContent>(std::move(content)));
  }

  [[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_packed(const Device& device,
                                                                        const GroupedProblem& problem,
                                                                        const PackedGroupedWeights& weights,
                                                                        const GroupedOptions& options,
                                                                        Bounds bounds) const override {
    return planned(device, problem, weights.storage().weights(), weights.shared(), options, bounds);
  }

  [[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_raw(const Device& device,
                                                                     const GroupedProblem& problem,
                                                                     const GroupedWeights& weights,
                                                                     const GroupedOptions& options,
                                                                     Bounds bounds) const override {
    return planned(device, problem, weights, nullptr, options, bounds);
  }

 private:
  static std::shared_ptr<const DualGemm::Backend> planned(const Device& device, const DualGemmProblem& problem,
                                                          const Tensor& b1_gate, const Tensor& b2_up,
                                                          std::shared_ptr<const PackedWeights::Storage> weights,
                                                          const DualGemmOptions& options) {
    require_exact(numerics_of(options.knobs));
    return std::make_shared<CpuDualGemm>(problem, device.id(), planned_calls(device, problem, options), b1_gate, b2_up,
                                         std::move(weights));
  }

  static std::shared_ptr<const GroupedGemm::Backend> planned(
      const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
      std::shared_ptr<const PackedGroupedWeights::Storage> storage, const GroupedOptions& options, Bounds bounds) {
    require_exact(numerics_of(options.knobs));
    strategies::PlannedCall call = with_bounds(
        choose_grouped(problem, request_of(options), device.kind(), cpu_device_spec()), problem, bounds, device.kind());
    return std::make_shared<CpuGroupedGemm>(problem, device.id(), std::move(call), weights, std::move(storage), bounds);
  }
};

}  // namespace

const DeviceOperations& cpu_operations() {
  static const CpuOperations operations;
  return operations;
}

}  // namespace thresher::ops
