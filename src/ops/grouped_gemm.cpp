#include "thresher/grouped_gemm.hpp"

#include "ops/products.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_product.hpp"

namespace thresher {

void GroupedGemm::run(Stream stream, const GroupedTensors& tensors, void* workspace) const {
  ops::run_grouped(*backend_, stream, tensors, workspace);
}

GroupedStatus GroupedGemm::status(Stream stream, const void* workspace) const {
  ops::check_workspace(workspace, workspace_bytes());
  return backend_->status(stream, workspace);
}

std::size_t GroupedGemm::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& GroupedGemm::strategy() const { return backend_->strategy(); }

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
  return PackedGroupedWeights(ops::pack_product(device, weights, options));
}

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const PackedGroupedWeights& weights,
                 const GroupedOptions& options) {
  return {problem, ops::plan_grouped(device, problem, weights, options)};
}

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
                 const GroupedOptions& options) {
  return {problem, ops::plan_grouped(device, problem, weights, options)};
}

std::vector<std::string> grouped_gemm_strategies(const Device& device) {
  return ops::strategy_names(ops::Product::grouped, device);
}

}  // namespace thresher
