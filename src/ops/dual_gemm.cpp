#include "thresher/dual_gemm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ops/backend.hpp"
#include "ops/device_operations.hpp"
#include "ops/tuning.hpp"
#include "ops/validate.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace ops {

void require_strategy(const DeviceOperations& operations, const std::string& strategy) {
  const std::vector<std::string> known = operations.dual_gemm_strategies();
  if (!strategy.empty() && std::find(known.begin(), known.end(), strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no dual-GEMM strategy '{}' on this device, expected one of {}", strategy,
                            fmt::join(known, ", ")));
  }
}

}  // namespace ops

namespace {

/// What was measured fastest, where that still exists and takes these weights; else the device's own choice.
template <class Plan>
DualGemm planned(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options,
                 const Plan& plan) {
  if (const auto tuned = ops::tuned_options(device, problem, options)) {
    try {
      return DualGemm(plan(*tuned));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::invalid_argument) {
        throw;
      }
    }
  }
  return DualGemm(plan(options));
}

}  // namespace

void DualGemm::run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  ops::validate_run(problem(), a, c, workspace, workspace_bytes(), backend_->data_alignment(), backend_->device());
  if (problem().m == 0 || problem().n == 0) {
    return;
  }
  backend_->prepare(stream, a, workspace);
  backend_->run_prepared(stream, a, c, workspace);
}

void DualGemm::prepare(Stream stream, const Tensor& a, void* workspace) const {
  ops::validate_tokens(problem(), a, workspace, workspace_bytes(), backend_->data_alignment(), backend_->device());
  if (problem().m > 0 && problem().n > 0) {
    backend_->prepare(stream, a, workspace);
  }
}

void DualGemm::run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  ops::validate_run(problem(), a, c, workspace, workspace_bytes(), backend_->data_alignment(), backend_->device());
  if (problem().m > 0 && problem().n > 0) {
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
  const ops::DeviceOperations& operations = ops::operations_for(device.kind());
  ops::require_strategy(operations, options.strategy);
  return planned(device, problem, options, [&](const DualGemmOptions& chosen) {
    return operations.plan_packed(device, problem, weights, chosen);
  });
}

DualGemm plan(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up,
              const DualGemmOptions& options) {
  ops::validate(problem);
  ops::validate_weights(problem, b1_gate, b2_up, device.id());
  const ops::DeviceOperations& operations = ops::operations_for(device.kind());
  ops::require_strategy(operations, options.strategy);
  return planned(device, problem, options, [&](const DualGemmOptions& chosen) {
    return operations.plan_raw(device, problem, b1_gate, b2_up, chosen);
  });
}

std::vector<std::string> dual_gemm_strategies(const Device& device) {
  return ops::operations_for(device.kind()).dual_gemm_strategies();
}

}  // namespace thresher
