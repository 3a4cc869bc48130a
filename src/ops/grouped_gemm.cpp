#include "thresher/grouped_gemm.hpp"

#include "ops/device_operations.hpp"
#include "ops/grouped_backend.hpp"
#include "ops/grouped_choice.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_grouped.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher {

void GroupedGemm::run(Stream stream, const GroupedTensors& tensors, void* workspace) const {
  if (backend_->bounds() == ops::Bounds::routed) {
    throw Error(ErrorCode::unsupported, "this product sorts the choices of its layer, and runs in that alone");
  }
  ops::run_grouped(*backend_, stream, tensors, {}, workspace);
}

GroupedStatus GroupedGemm::status(Stream stream, const void* workspace) const {
  ops::check_workspace(workspace, workspace_bytes());
  return backend_->status(stream, workspace);
}

std::size_t GroupedGemm::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& GroupedGemm::strategy() const { return backend_->strategy(); }
const GroupedProblem& GroupedGemm::problem() const { return backend_->problem(); }

std::int64_t PackedGroupedWeights::experts() const noexcept { return storage_->shape().experts; }
std::int64_t PackedGroupedWeights::n() const noexcept { return storage_->shape().n; }
std::int64_t PackedGroupedWeights::k() const noexcept { return storage_->shape().k; }
int PackedGroupedWeights::matrices() const noexcept { return storage_->shape().matrices; }
Format PackedGroupedWeights::format() const noexcept { return storage_->shape().format; }
bool PackedGroupedWeights::has_bias() const noexcept { return storage_->shape().has_bias; }
Numerics PackedGroupedWeights::numerics() const noexcept { return storage_->numerics(); }
const Device& PackedGroupedWeights::device() const noexcept { return storage_->device(); }

PackedGroupedWeights pack(const Device& device, const GroupedWeights& weights, const PackOptions& options) {
  ops::validate_weights(weights, device.id());
  return PackedGroupedWeights(ops::operations_for(device.kind()).pack(device, weights, options));
}

std::shared_ptr<const GroupedGemm::Backend> ops::plan_grouped(const Device& device, const GroupedProblem& problem,
                                                              const PackedGroupedWeights& weights,
                                                              const GroupedOptions& options, Bounds bounds) {
  validate(problem);
  if (weights.device().id() != device.id()) {
    refuse("the weights were packed for {}, not for {}: pack them again", weights.device().name(), device.name());
  }
  validate_weights(problem, weights.storage().shape());
  require_grouped_strategy(device, options.strategy);
  return operations_for(device.kind()).plan_packed(device, problem, weights, options, bounds);
}

std::shared_ptr<const GroupedGemm::Backend> ops::plan_grouped(const Device& device, const GroupedProblem& problem,
                                                              const GroupedWeights& weights,
                                                              const GroupedOptions& options, Bounds bounds) {
  validate(problem);
  validate_weights(weights, device.id());
  validate_weights(problem, shape_of(weights));
  require_grouped_strategy(device, options.strategy);
  return operations_for(device.kind()).plan_raw(device, problem, weights, options, bounds);
}

void ops::run_grouped(const GroupedGemm::Backend& backend, Stream stream, const GroupedTensors& tensors,
                      const strategies::moe_layer::RoutedTensors& routed, void* workspace) {
  validate_run(backend.problem(), tensors, backend.weights(), workspace, backend.workspace_bytes(),
               backend.data_alignment(), backend.device());
  backend.run(stream, tensors, routed, workspace);
}

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const PackedGroupedWeights& weights,
                 const GroupedOptions& options) {
  return GroupedGemm(ops::plan_grouped(device, problem, weights, options, ops::Bounds::given));
}

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
                 const GroupedOptions& options) {
  return GroupedGemm(ops::plan_grouped(device, problem, weights, options, ops::Bounds::given));
}

std::vector<std::string> grouped_gemm_strategies(const Device& device) {
  std::vector<std::string> names;
  for (const auto* strategy : strategies::gemm::strategies_of(strategies::gemm::Product::grouped, device.kind())) {
    names.emplace_back(strategy->name());
  }
  return names;
}

}  // namespace thresher
