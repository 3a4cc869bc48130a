#include "thresher/grouped_gemm.hpp"

#include "ops/device_operations.hpp"
#include "ops/grouped_backend.hpp"
#include "ops/grouped_choice.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_grouped.hpp"
#include "strategies/grouped_gemm/registry.hpp"

namespace thresher {

void GroupedGemm::run(Stream stream, const GroupedTensors& tensors, void* workspace) const {
  ops::validate_run(problem(), tensors, backend_->weights(), workspace, workspace_bytes(), backend_->data_alignment(),
                    backend_->device());
  backend_->run(stream, tensors, workspace);
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

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const PackedGroupedWeights& weights,
                 const GroupedOptions& options) {
  ops::validate(problem);
  if (weights.device().id() != device.id()) {
    ops::refuse("the weights were packed for {}, not for {}: pack them again", weights.device().name(), device.name());
  }
  ops::validate_weights(problem, weights.storage().shape());
  ops::require_grouped_strategy(device, options.strategy);
  return GroupedGemm(ops::operations_for(device.kind()).plan_packed(device, problem, weights, options, ops::Bounds::given));
}

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
                 const GroupedOptions& options) {
  ops::validate(problem);
  ops::validate_weights(weights, device.id());
  ops::validate_weights(problem, ops::shape_of(weights));
  ops::require_grouped_strategy(device, options.strategy);
  return GroupedGemm(ops::operations_for(device.kind()).plan_raw(device, problem, weights, options, ops::Bounds::given));
}

std::vector<std::string> grouped_gemm_strategies(const Device& device) {
  std::vector<std::string> names;
  for (const auto* strategy : strategies::grouped_gemm::strategies_of(device.kind())) {
    names.emplace_back(strategy->name());
  }
  return names;
}

}  // namespace thresher
