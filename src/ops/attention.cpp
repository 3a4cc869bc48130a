#include "thresher/attention.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ops/attention_backend.hpp"
#include "ops/validate_attention.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace ops {

const AttentionOperations& attention_operations_for(DeviceKind kind) {
  return kind == DeviceKind::cpu ? cpu_attention_operations() : cuda_attention_operations();
}

}  // namespace ops

Attention plan(const Device& device, const AttentionProblem& problem, const AttentionOptions& options) {
  ops::validate(problem);
  if (options.threads < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("options.threads is {}, expected 0 (all) or more", options.threads));
  }
  const ops::AttentionOperations& operations = ops::attention_operations_for(device.kind());
  const std::vector<std::string> known = operations.strategies();
  if (!options.strategy.empty() && std::find(known.begin(), known.end(), options.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no attention strategy '{}' on this device, expected one of {}", options.strategy,
                            fmt::join(known, ", ")));
  }
  return Attention(operations.plan(device, problem, options));
}

void Attention::run(Stream stream, const AttentionTensors& tensors, void* workspace) const {
  ops::validate_run(problem(), tensors, backend_->device());
  ops::validate_workspace(workspace, workspace_bytes());
  if (problem().queries == 0 || problem().batch == 0) {
    return;
  }
  backend_->run(stream, tensors, workspace);
}

std::size_t Attention::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& Attention::strategy() const { return backend_->strategy(); }
const AttentionProblem& Attention::problem() const { return backend_->problem(); }

std::vector<std::string> attention_strategies(const Device& device) {
  return ops::attention_operations_for(device.kind()).strategies();
}

}  // namespace thresher
