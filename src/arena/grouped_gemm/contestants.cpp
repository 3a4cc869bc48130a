// Thresher's own strategies of the grouped products in a tournament.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "arena/dual_gemm/options.hpp"
#include "arena/grouped_gemm/inputs.hpp"
#include "arena/grouped_gemm/operation.hpp"
#include "arena/grouped_gemm/task.hpp"
#include "arena/operation/planned_code.hpp"
#include "ops/forecast.hpp"
#include "ops/grouped_choice.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::gemm::Product;

/// A planned call of either kind.
class PlannedProduct {
 public:
  PlannedProduct(const Device& device, const GroupedTask& task, const GroupedWeights& weights,
                 const GroupedOptions& options) {
    if (task.is_dense) {
      dense_.emplace(plan(device, gemm_of(task),
                          GemmWeights{.b = only_matrix(weights.b1), .bias = only_matrix(weights.bias1)}, options));
    } else {
      grouped_.emplace(plan(device, task.problem, weights, options));
    }
  }

  void run(Stream stream, const GroupedTensors& tensors, void* workspace) const {
    if (dense_) {
      dense_->run(stream, tensors.a, tensors.c, workspace);
    } else {
      grouped_->run(stream, tensors, workspace);
    }
  }
  [[nodiscard]] std::size_t workspace_bytes() const {
    return dense_ ? dense_->workspace_bytes() : grouped_->workspace_bytes();
  }

 private:
  /// Of a stack of one; of rank 0 where there is none.
  static Tensor only_matrix(const Tensor& stack) {
    Tensor one = stack;
    one.rank = std::max(0, stack.rank - 1);
    std::copy(stack.shape.begin() + 1, stack.shape.end(), one.shape.begin());
    std::copy(stack.strides.begin() + 1, stack.strides.end(), one.strides.begin());
    return one;
  }

  std::optional<GroupedGemm> grouped_;
  std::optional<Gemm> dense_;
};

/// A plan for each set of weights, which several sets may share, and one watched workspace for all, since they run one
/// after another.
class GroupedRunner final : public Runner {
 public:
  GroupedRunner(const Device& device, const GroupedTask& task, const GroupedOptions& options, Memory& memory,
                const std::vector<DeviceSet>& sets) {
    std::map<const void*, PlannedProduct> by_weights;
    std::size_t bytes = 0;
    for (const DeviceSet& set : sets) {
      const FindTensor find = [&](std::string_view name) {
        const Tensor* const known = set.find(name);
        return known == nullptr ? Tensor{} : *known;
      };
      const GroupedWeights weights = grouped_weights(task, find);
      auto known = by_weights.find(weights.b1.data);
      if (known == by_weights.end()) {
        known = by_weights.emplace(weights.b1.data, PlannedProduct(device, task, weights, options)).first;
      }
      plans_.push_back(known->second);
      tensors_.push_back(grouped_tensors(task, find));
      bytes = std::max(bytes, known->second.workspace_bytes());
    }
    if (bytes > 0) {
      workspace_ = std::make_unique<GuardedBuffer>(memory, bytes);
    }
  }

  void run(Stream stream, std::size_t set) override {
    plans_[set].run(stream, tensors_[set], workspace_ ? workspace_->data() : nullptr);
  }

  [[nodiscard]] std::vector<std::string> guard_damage() const override {
    const auto damage = workspace_ ? workspace_->damage() : std::nullopt;
    return damage ? std::vector{describe(*damage, "its workspace")} : std::vector<std::string>{};
  }

 private:
  std::vector<PlannedProduct> plans_;  ///< of each set
  std::vector<GroupedTensors> tensors_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

const GroupedProblem& grouped(const Problem& problem) { return problem.as<GroupedTask>().problem; }

}  // namespace

std::vector<std::string> GroupedOperation::contestants(DeviceKind kind) const {
  std::vector<std::string> known;
  for (const auto* strategy : strategies::gemm::strategies_of(Product::grouped, kind)) {
    known.emplace_back(strategy->name());
  }
  return known;
}

void GroupedOperation::check(const ContestantSpec& spec, const Device& device) const {
  const std::vector<std::string> known = contestants(device.kind());
  if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", arena::label(spec),
                            device.name(), fmt::join(known, ", ")));
  }
}

Numerics GroupedOperation::numerics(const ContestantSpec& spec) const {
  return ops::numerics_of(plan_options(spec).knobs);
}

std::string GroupedOperation::format_obstacle(const Problem& problem, const ContestantSpec& spec,
                                              const Device& device) const {
  return ops::grouped_format_obstacle(device, grouped(problem), plan_options(spec));
}

std::string GroupedOperation::obstacle(const Problem& problem, const ContestantSpec& spec, const Device& device) const {
  return ops::grouped_obstacle(device, grouped(problem), plan_options(spec));
}

PlanRequest GroupedOperation::plan_request(const ContestantSpec& spec) const {
  const GroupedOptions options = plan_options(spec);
  return {options.strategy, options.knobs.text()};
}

MachineCode GroupedOperation::machine_code(const Problem& problem, const ContestantSpec& spec,
                                           const DeviceSpec& device) const {
  return machine_code_of(ops::planned_call(grouped(problem), plan_options(spec), device),
                         std::string(thresher::name(device.arch)));
}

std::unique_ptr<Runner> GroupedOperation::prepare(const Problem& problem, const ContestantSpec& spec,
                                                  const Device& device, Memory& memory,
                                                  const std::vector<DeviceSet>& sets) const {
  return std::make_unique<GroupedRunner>(device, problem.as<GroupedTask>(), plan_options(spec), memory, sets);
}

PlannerResult GroupedOperation::outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                        const planner::Calibration& calibration) const {
  try {
    if (std::string obstacle =
            ops::grouped_format_obstacle(DeviceKind::cuda, device, grouped(problem), plan_options(spec));
        !obstacle.empty()) {
      return {.infeasible_reasons = {std::move(obstacle)}, .is_for_other_formats = true};
    }
    const strategies::PlannedCall call = ops::planned_call(grouped(problem), plan_options(spec), device);
    return {.work = call.work, .prediction = ops::forecast(call, device, calibration)};
  } catch (const Error& error) {
    return {.infeasible_reasons = {error.what()}};
  }
}

}  // namespace thresher::arena
