#include "thresher/dual_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/backend.hpp"
#include "ops/device_operations.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate.hpp"
#include "planner/choose.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

using strategies::gemm::Product;

/// Throws Error(invalid_argument) naming the strategies there are when `strategy` is neither empty nor one of them.
void require_strategy(const Device& device, const std::string& strategy) {
  const std::vector<std::string> known = dual_gemm_strategies(device);
  if (!strategy.empty() && std::find(known.begin(), known.end(), strategy) == known.end()) {
    planner::refuse_unknown_strategy(strategy, known);
  }
}

}  // namespace

void DualGemm::validate(const Tensor& a, const Tensor& c, const void* workspace) const {
  ops::validate_run(problem(), a, c, workspace, workspace_bytes(), backend_->data_alignment(), backend_->device());
  for (const auto& [argument, weights] : {std::pair{"b1 (gate)", &weights_[0]}, std::pair{"b2 (up)", &weights_[1]}}) {
    ops::check_not_overlapping(c, argument, *weights);
    ops::check_outside_workspace(argument, *weights, workspace, workspace_bytes());
  }
}

void DualGemm::run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  validate(a, c, workspace);
  if (a.shape[0] > 0 && problem().n > 0) {
    backend_->run(stream, a, c, workspace);
  }
}

void DualGemm::prepare(Stream stream, const Tensor& a, void* workspace) const {
  ops::validate_tokens(problem(), a, workspace, workspace_bytes(), backend_->data_alignment(), backend_->device());
  if (a.shape[0] > 0 && problem().n > 0) {
    backend_->prepare(stream, a, workspace);
  }
}

void DualGemm::run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  validate(a, c, workspace);
  if (a.shape[0] > 0 && problem().n > 0) {
    backend_->run_prepared(stream, a, c, workspace);
  }
}

std::size_t DualGemm::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& DualGemm::strategy() const { return backend_->strategy(); }
const DualGemmProblem& DualGemm::problem() const { return backend_->problem(); }

std::int64_t PackedWeights::n() const noexcept { return storage_->b1_gate().shape[0]; }
std::int64_t PackedWeights::k() const noexcept { return storage_->b1_gate().shape[1]; }
Format PackedWeights::format() const noexcept { return storage_->b1_gate().format; }
Numerics PackedWeights::numerics() const noexcept { return storage_->numerics(); }
const Device& PackedWeights::device() const noexcept { return storage_->device(); }

PackedWeights pack(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, const PackOptions& options) {
  ops::validate_pair(b1_gate, b2_up, device.id());
  return PackedWeights(ops::operations_for(device.kind()).pack(device, b1_gate, b2_up, options));
}

DualGemm plan(const Device& device, const DualGemmProblem& problem, const PackedWeights& weights,
              const DualGemmOptions& options) {
  ops::validate(problem);
  const PackedWeights::Storage& storage = weights.storage();
  if (storage.device().id() != device.id()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the weights were packed for {}, not for {}: pack them again",
                                                         storage.device().name(), device.name()));
  }
  ops::validate_weights(problem, storage.b1_gate(), storage.b2_up(), device.id());
  require_strategy(device, options.strategy);
  // Packing copies on a GPU.
  const bool is_copied = device.kind() == DeviceKind::cuda;
  return DualGemm(ops::operations_for(device.kind()).plan_packed(device, problem, weights, options),
                  is_copied ? std::array<Tensor, 2>{} : std::array{storage.b1_gate(), storage.b2_up()});
}

DualGemm plan(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up,
              const DualGemmOptions& options) {
  ops::validate(problem);
  ops::validate_weights(problem, b1_gate, b2_up, device.id());
  require_strategy(device, options.strategy);
  return DualGemm(ops::operations_for(device.kind()).plan_raw(device, problem, b1_gate, b2_up, options),
                  {b1_gate, b2_up});
}

std::vector<std::string> dual_gemm_strategies(const Device& device) {
  std::vector<std::string> names;
  for (const auto* strategy : strategies::gemm::strategies_of(Product::dual_gemm, device.kind())) {
    names.emplace_back(strategy->name());
  }
  return names;
}

}  // namespace thresher
