// How `plan` computes layers, in a tournament.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "arena/dual_gemm/task.hpp"
#include "arena/moe_layer/calls.hpp"
#include "arena/moe_layer/inputs.hpp"
#include "arena/moe_layer/operation.hpp"
#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/task.hpp"
#include "arena/operation/planned_code.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/dual_gemm_choice.hpp"
#include "ops/gemm_problem.hpp"
#include "ops/grouped_choice.hpp"
#include "ops/layer_parts.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::gemm::Product;

/// A planned layer of either kind.
class PlannedLayer {
 public:
  PlannedLayer(const Device& device, const LayerTask& task, const FindTensor& find, const MoeOptions& options) {
    if (task.is_dense) {
      dense_.emplace(plan(device, gated_mlp_of(task), gated_mlp_weights(find), gated_mlp_options(options)));
    } else {
      of_experts_.emplace(plan(device, task.problem, gate_up_weights(task, find), down_weights(task, find), options));
    }
  }

  void run(Stream stream, const MoeTensors& tensors, void* workspace) const {
    if (dense_) {
      dense_->run(stream, tensors.x, tensors.out, workspace);
    } else {
      of_experts_->run(stream, tensors, workspace);
    }
  }
  [[nodiscard]] std::size_t workspace_bytes() const {
    return dense_ ? dense_->workspace_bytes() : of_experts_->workspace_bytes();
  }

 private:
  std::optional<MoeLayer> of_experts_;
  std::optional<GatedMlp> dense_;
};

/// A plan for each set of weights, which several sets may share, and one watched workspace for all, since they run one
/// after another.
class LayerRunner final : public Runner {
 public:
  LayerRunner(const Device& device, const LayerTask& task, const MoeOptions& options, Memory& memory,
              const std::vector<DeviceSet>& sets) {
    std::map<const void*, PlannedLayer> by_weights;
    std::size_t bytes = 0;
    for (const DeviceSet& set : sets) {
      const FindTensor find = [&](std::string_view name) {
        const Tensor* const known = set.find(name);
        return known == nullptr ? Tensor{} : *known;
      };
      const void* const weights = find("down.b1").data;
      auto known = by_weights.find(weights);
      if (known == by_weights.end()) {
        known = by_weights.emplace(weights, PlannedLayer(device, task, find, options)).first;
      }
      plans_.push_back(known->second);
      tensors_.push_back(layer_tensors(find));
      bytes = std::max(bytes, known->second.workspace_bytes());
    }
    if (bytes > 0) {
      workspace_.emplace(memory, bytes);
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
  std::vector<PlannedLayer> plans_;  ///< of each set
  std::vector<MoeTensors> tensors_;
  std::optional<GuardedBuffer> workspace_;
};

template <class Strategies>
std::vector<std::string> names_of(const Strategies& strategies) {
  std::vector<std::string> names;
  for (const auto* strategy : strategies) {
    names.emplace_back(strategy->name());
  }
  return names;
}

/// Throws Error(invalid_argument) for a strategy, a knob or a value that there is not. What is left to `plan` has none
/// of its own.
template <class Problem>
void check_product(const char* product, strategies::Strategies<Problem> all,
                   const std::type_identity_t<Problem>& problem, const DualGemmOptions& options,
                   const DeviceSpec& device) {
  ops::of_product(product, [&] {
    if (options.strategy.empty()) {
      (void)planner::choose<Problem>(all, problem, ops::request_of(options), device);
    } else {
      (void)ops::named_strategy(all, options.strategy)
          .infeasible_reasons(problem, ops::request_of(options).knobs, device);
    }
  });
}

/// The same of both products, whether or not they take the layer's formats.
void check_products(const LayerTask& task, const MoeOptions& options, DeviceKind kind, const DeviceSpec& device) {
  constexpr const char* of_gate_up = "gate_up";
  constexpr const char* of_down = "down";
  const auto products = strategies::gemm::strategies_of(Product::grouped, kind);
  if (task.is_dense) {
    const GatedMlpProblem problem = gated_mlp_of(task);
    check_product(of_gate_up, strategies::gemm::strategies_of(Product::dual_gemm, kind), ops::gate_up_problem(problem),
                  options.gate_up, device);
    check_product(of_down, products, ops::one_expert(ops::down_problem(problem)), options.down, device);
  } else {
    check_product(of_gate_up, products, gate_up_problem(task.problem), options.gate_up, device);
    check_product(of_down, products, down_problem(task.problem), options.down, device);
  }
}

}  // namespace

std::vector<std::string> LayerOperation::contestants(DeviceKind kind) const {
  // What a user without Thresher does comes first, as it does among the products.
  std::vector<std::string> known = is_dense_ ? dual_gemm_operation().contestants(kind)
                                             : names_of(strategies::gemm::strategies_of(Product::grouped, kind));
  known.emplace_back(planned_layer);
  return known;
}

void LayerOperation::check(const ContestantSpec& spec, const Device& device) const {
  const std::vector<std::string> known = contestants(device.kind());
  if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", arena::label(spec),
                            device.name(), fmt::join(known, ", ")));
  }
  check_products(example().as<LayerTask>(), layer_options(spec), device.kind(), ops::spec_of(device));
}

std::string LayerOperation::format_obstacle(const Problem& problem, const ContestantSpec& spec,
                                            const Device& device) const {
  return unsupported_format(problem.as<LayerTask>(), layer_options(spec), device.kind(), ops::spec_of(device));
}

std::string LayerOperation::obstacle(const Problem& problem, const ContestantSpec& spec, const Device& device) const {
  const auto& task = problem.as<LayerTask>();
  const MoeOptions options = layer_options(spec);
  return task.is_dense ? ops::layer_obstacle(device, gated_mlp_of(task), gated_mlp_options(options))
                       : ops::layer_obstacle(device, task.problem, options);
}

PlanRequest LayerOperation::plan_request(const ContestantSpec& spec) const { return request_of(layer_options(spec)); }

MachineCode LayerOperation::machine_code(const Problem& problem, const ContestantSpec& spec,
                                         const DeviceSpec& device) const {
  const ops::LayerCalls calls = calls_of(problem.as<LayerTask>(), layer_options(spec), device);
  MachineCode code;
  // The products first, which people look for.
  std::vector<const strategies::PlannedCall*> all = calls.in_order();
  std::stable_partition(all.begin(), all.end(),
                        [&](const auto* call) { return call == &calls.gate_up || call == &calls.down; });
  for (const strategies::PlannedCall* const call : all) {
    MachineCode of_call = machine_code_of(*call, std::string(thresher::name(device.arch)));
    std::move(of_call.kernels.begin(), of_call.kernels.end(), std::back_inserter(code.kernels));
    code.not_judged = code.not_judged.empty() ? of_call.not_judged : code.not_judged;
  }
  return code;
}

std::unique_ptr<Runner> LayerOperation::prepare(const Problem& problem, const ContestantSpec& spec,
                                                const Device& device, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const {
  return std::make_unique<LayerRunner>(device, problem.as<LayerTask>(), layer_options(spec), memory, sets);
}

PlannerResult LayerOperation::outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                      const planner::Calibration& calibration) const {
  const auto& task = problem.as<LayerTask>();
  const MoeOptions options = layer_options(spec);
  try {
    check_products(task, options, DeviceKind::cuda, device);
    if (std::string obstacle = unsupported_format(task, options, DeviceKind::cuda, device); !obstacle.empty()) {
      return {.infeasible_reasons = {std::move(obstacle)}, .is_for_other_formats = true};
    }
    const ops::LayerCalls calls = calls_of(task, options, device);
    PlannerResult outlook{.prediction = ops::forecast(calls, device, calibration)};
    for (const strategies::PlannedCall* const call : calls.in_order()) {
      outlook.work.parts.insert(outlook.work.parts.end(), call->work.parts.begin(), call->work.parts.end());
    }
    return outlook;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) {
      throw;  // a strategy, a knob or a value that there is not
    }
    return {.infeasible_reasons = {error.what()}};
  }
}

}  // namespace thresher::arena
