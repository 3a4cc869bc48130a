#pragma once
/// Runs a plan of the public API over the input sets of a tournament.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arena/data/device_set.hpp"
#include "arena/operation/find_tensor.hpp"
#include "arena/timing/runner.hpp"

namespace thresher::arena {

/// A plan for each set of weights, which several sets may share, and one watched workspace for all, since they run one
/// after another.
template <class Plan, class Tensors>
class PlannedRunner final : public Runner {
 public:
  /// `weights` names the tensor that tells weights apart; where there is none, one plan is for all sets. `make_plan`
  /// and `make_tensors` take a FindTensor.
  template <class MakePlan, class MakeTensors>
  PlannedRunner(Memory& memory, const std::vector<DeviceSet>& sets, const char* weights, const MakePlan& make_plan,
                const MakeTensors& make_tensors) {
    std::map<const void*, std::shared_ptr<const Plan>> by_weights;
    std::size_t bytes = 0;
    for (const DeviceSet& set : sets) {
      const FindTensor find = find_in(set);
      std::shared_ptr<const Plan>& plan = by_weights[find(weights).data];
      if (plan == nullptr) {
        plan = std::make_shared<const Plan>(make_plan(find));
      }
      calls_.push_back({plan, make_tensors(find)});
      bytes = std::max(bytes, plan->workspace_bytes());
    }
    if (bytes > 0) {
      workspace_ = std::make_unique<GuardedBuffer>(memory, bytes);
    }
  }

  void run(Stream stream, std::size_t set) override {
    const auto& [plan, tensors] = calls_[set];
    void* const workspace = workspace_ ? workspace_->data() : nullptr;
    if constexpr (requires { plan->run(stream, tensors, workspace); }) {
      plan->run(stream, tensors, workspace);
    } else {
      plan->run(stream, tensors.in, tensors.out, workspace);
    }
  }

  [[nodiscard]] std::vector<std::string> guard_damage() const override {
    const auto damage = workspace_ ? workspace_->damage() : std::nullopt;
    return damage ? std::vector{describe(*damage, "its workspace")} : std::vector<std::string>{};
  }

  [[nodiscard]] const Plan& first_plan() const { return *calls_.front().plan; }

 private:
  struct Call {
    std::shared_ptr<const Plan> plan;
    Tensors tensors;
  };

  std::vector<Call> calls_;  ///< of each set
  std::unique_ptr<GuardedBuffer> workspace_;
};

/// The tensors of a plan that is bound to its weights.
struct MatrixCall {
  Tensor in;
  Tensor out;
};

template <class MakePlan, class MakeTensors>
[[nodiscard]] auto make_planned_runner(Memory& memory, const std::vector<DeviceSet>& sets, const char* weights,
                                       const MakePlan& make_plan, const MakeTensors& make_tensors) {
  using Plan = std::invoke_result_t<MakePlan, const FindTensor&>;
  using Tensors = std::invoke_result_t<MakeTensors, const FindTensor&>;
  return std::make_unique<PlannedRunner<Plan, Tensors>>(memory, sets, weights, make_plan, make_tensors);
}

}  // namespace thresher::arena
