#pragma once
/// The grouped strategies' kernels on a GPU, as their planned calls launch them, on the operands of a case.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "reference/plain_sums.hpp"
#include "runtime/stream.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
#include "support/grouped_checks.hpp"
#include "support/tensor_on_gpu.hpp"

#define SKIP_WITHOUT_HOPPER()                            \
  SKIP_WITHOUT_GPU();                                    \
  if (!runtime::device_properties(0).is(Arch::sm_90a)) { \
    GTEST_SKIP() << "these kernels are for Hopper GPUs"; \
  }                                                      \
  static_assert(true)

namespace thresher::test {

using GroupedStrategy = strategies::Strategy<strategies::gemm::ProductProblem>;

inline DeviceSpec device() { return ops::spec_of(Device::cuda(0)); }

/// A planned call on the operands of a case.
class GpuRun {
 public:
  GpuRun(GroupedCase& host, const strategies::PlannedCall& planned)
      : host_(host),
        b1_(host.weights().b1),
        b2_(host.weights().b2),
        bias1_(host.weights().bias1),
        bias2_(host.weights().bias2),
        a_(host.tensors().a),
        c_(host.tensors().c),
        groups_(groups_of(host)),
        row_ids_(host.tensors().row_ids),
        row_weights_(host.tensors().row_weights) {
    const std::string* const numerics = planned.knobs.find("numerics");
    numerics_ = numerics != nullptr && *numerics == "fast" ? Numerics::fast : Numerics::exact;
    GroupedWeights weights = host.weights();
    if (weights.up_global_scale != nullptr) {
      up_scales_ = std::make_unique<OnGpu>(
          std::vector<float>(weights.up_global_scale, weights.up_global_scale + host.problem().experts));
      weights.up_global_scale = static_cast<const float*>(up_scales_->data());
    }
    weights.b1 = b1_.tensor();
    weights.b2 = b2_.tensor();
    weights.bias1 = bias1_.tensor();
    weights.bias2 = bias2_.tensor();
    GroupedTensors tensors = host.tensors();
    tensors.a = a_.tensor();
    tensors.c = c_.tensor();
    (tensors.counts.rank > 0 ? tensors.counts : tensors.offsets) = groups_.tensor();
    tensors.row_ids = row_ids_.tensor();
    tensors.row_weights = row_weights_.tensor();
    tensors_ = strategies::gemm::in_order(weight_views(weights), tensors);
    if (planned.packing != nullptr) {
      packed_ = runtime::DeviceBuffer(0, planned.packed_bytes());
      const strategies::CallTensors of{tensors_, nullptr, packed_.data()};
      ops::CudaCall(*planned.packing, 0, of).run({}, of);
      runtime::synchronize({}, 0);
    }
    call_ = std::make_unique<ops::CudaCall>(planned, 0, strategies::CallTensors{tensors_, nullptr, packed_.data()});
    workspace_ = std::make_unique<OnGpu>(call_->workspace_bytes());
  }

  void enqueue(Stream stream) const { call_->run(stream, {tensors_, workspace_->data(), packed_.data()}); }

  /// Runs it and looks at everything it may have touched; empty when C and the status are right.
  std::string run_and_judge() {
    poison();
    enqueue({});
    runtime::synchronize({}, 0);
    return judged();
  }
  std::string judged() {
    c_.fetch(host_.tensors().c);
    for (const TensorOnGpu* tensor : {&b1_, &b2_, &bias1_, &bias2_, &a_, &c_, &groups_, &row_ids_, &row_weights_}) {
      if (!tensor->guards_intact()) {
        return "memory around a tensor was written";
      }
    }
    if (!workspace_->guards_intact()) {
      return "memory around the workspace was written";
    }
    const GroupedStatus status{strategies::flags_in(workspace_->download<std::uint32_t>())};
    const GroupedStatus wanted = reference::owned_rows(host_.problem(), host_.tensors()).status;
    if (status != wanted) {
      return "status: " + status.explain() + ", expected: " + wanted.explain();
    }
    const reference::PlainSums sums =
        reference::plain_sums(host_.problem().a, host_.problem().b, numerics_, DeviceKind::cuda);
    return wrong_rows(host_, sums.is_folded ? Numerics::fast : Numerics::exact, sums.accumulation);
  }
  /// Other groups for the calls that follow, on the GPU and for the judge.
  void regroup(const std::vector<std::int32_t>& groups) {
    host_.groups() = groups;
    runtime::copy(groups_.values().data(), groups.data(), groups.size() * sizeof(std::int32_t), 0);
  }
  void poison() const {
    c_.values().fill(0xFF);
    c_.scales().fill(0xFF);
  }
  /// Of C, and behind them of its scales.
  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> all = c_.values().download<std::uint8_t>();
    const std::vector<std::uint8_t> scales = c_.scales().download<std::uint8_t>();
    all.insert(all.end(), scales.begin(), scales.end());
    return all;
  }

 private:
  static Tensor groups_of(GroupedCase& host) {
    const GroupedTensors tensors = host.tensors();
    return tensors.counts.rank > 0 ? tensors.counts : tensors.offsets;
  }

  GroupedCase& host_;
  Numerics numerics_ = Numerics::exact;
  TensorOnGpu b1_;
  TensorOnGpu b2_;
  TensorOnGpu bias1_;
  TensorOnGpu bias2_;
  TensorOnGpu a_;
  TensorOnGpu c_;
  TensorOnGpu groups_;
  TensorOnGpu row_ids_;
  TensorOnGpu row_weights_;
  std::unique_ptr<OnGpu> up_scales_;
  std::array<Tensor, strategies::gemm::tensor_count> tensors_;
  runtime::DeviceBuffer packed_;
  std::unique_ptr<ops::CudaCall> call_;
  std::unique_ptr<OnGpu> workspace_;
};

/// `act(strategy, knobs)` for every strategy made for the problem, and every configuration that it would choose from.
template <class Act>
void for_every_choice(const GroupedProblem& problem, const Act& act) {
  const DeviceSpec here = device();
  for (const GroupedStrategy* const strategy :
       strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda)) {
    if (!strategy->unsupported_reason(problem, here)) {
      std::vector<Knobs> all = strategy->candidates(problem, {}, here);
      if (bits(problem.b) < 16) {
        const std::vector<Knobs> fast = strategy->candidates(problem, {{"numerics", "fast"}}, here);
        all.insert(all.end(), fast.begin(), fast.end());
      }
      for (const Knobs& knobs : all) {
        SCOPED_TRACE(std::string(strategy->name()) + " " + knobs.text());
        act(*strategy, knobs);
      }
    }
  }
}

inline std::string judged(const GroupedProblem& problem, const GroupedForm& form, const GroupedStrategy& strategy,
                          const Knobs& knobs) {
  GroupedCase host(problem, form);
  return GpuRun(host, strategy.plan(problem, knobs, device())).run_and_judge();
}

}  // namespace thresher::test
