#include "thresher/attention.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "ops/attention_backend.hpp"
#include "ops/attention_call.hpp"
#include "ops/cuda_call.hpp"
#include "ops/cuda_status.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_attention.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

using strategies::CallTensors;
using strategies::PlannedCall;

class CpuAttention final : public Attention::Backend {
 public:
  CpuAttention(const AttentionProblem& problem, DeviceId device, PlannedCall call)
      : Backend(problem, device), call_(std::move(call)) {}
  void run(Stream, const CallTensors& tensors) const override {
    for (const strategies::Step& step : call_.steps) {
      std::get<strategies::HostCall>(step).call(tensors);
    }
  }
  [[nodiscard]] AttentionStatus status(Stream, const void*) const override { return {}; }
  [[nodiscard]] std::size_t workspace_bytes() const override { return call_.workspace_bytes(); }
  [[nodiscard]] const std::string& strategy() const noexcept override { return call_.strategy; }

 private:
  PlannedCall call_;
};

class CudaAttention final : public Attention::Backend {
 public:
  CudaAttention(const AttentionProblem& problem, DeviceId device, PlannedCall call)
      : Backend(problem, device), call_(std::move(call), device.ordinal, {}) {}
  void run(Stream stream, const CallTensors& tensors) const override { call_.run(stream, tensors); }
  [[nodiscard]] AttentionStatus status(Stream stream, const void* workspace) const override {
    AttentionStatus status;
    for (const strategies::WorkspacePiece& piece : call_.planned().workspace) {
      if (strategies::attention::is_status(piece)) {
        const void* words = static_cast<const std::byte*>(workspace) + piece.offset;
        status.flags |= ops::status_flags(stream, words, piece.bytes, device().ordinal);
      }
    }
    return status;
  }
  [[nodiscard]] std::size_t workspace_bytes() const override { return call_.workspace_bytes(); }
  [[nodiscard]] const std::string& strategy() const noexcept override { return call_.planned().strategy; }

 private:
  ops::CudaCall call_;
};

template <class Wanted>
std::vector<std::string> names(strategies::Strategies<AttentionProblem> all, const Wanted& is_wanted) {
  std::vector<std::string> found;
  for (const auto* strategy : all) {
    if (is_wanted(*strategy)) {
      found.emplace_back(strategy->name());
    }
  }
  return found;
}

/// Where nothing can be compiled: `chosen` if its machine code is at hand, else the first strategy, else a fallback.
std::shared_ptr<const Attention::Backend> plan_without_compiler(const Device& device, const AttentionProblem& problem,
                                                                PlannedCall chosen) {
  const auto all = strategies::attention::registry().of(device.kind());
  std::vector<std::string> others{std::string(all.front()->name())};
  const std::vector<std::string> fallbacks =
      names(all, [&](const auto& strategy) { return strategy.role(problem) == strategies::Role::fallback; });
  others.insert(others.end(), fallbacks.begin(), fallbacks.end());
  for (const std::string& other : others) {
    try {
      return std::make_shared<CudaAttention>(problem, device.id(), std::move(chosen));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) {
        throw;
      }
    }
    chosen = ops::attention_call(problem, {.strategy = other}, device);
  }
  return std::make_shared<CudaAttention>(problem, device.id(), std::move(chosen));
}

}  // namespace

Attention plan(const Device& device, const AttentionProblem& problem, const AttentionOptions& options) {
  ops::validate(problem);
  ops::check_threads(options.threads);
  PlannedCall call = ops::attention_call(problem, options, device);
  if (device.kind() == DeviceKind::cpu) {
    return Attention(std::make_shared<CpuAttention>(problem, device.id(), std::move(call)));
  }
  if (options.strategy.empty() && !runtime::nvrtc_status().problem.empty()) {
    return Attention(plan_without_compiler(device, problem, std::move(call)));
  }
  return Attention(std::make_shared<CudaAttention>(problem, device.id(), std::move(call)));
}

void Attention::run(Stream stream, const AttentionTensors& tensors, void* workspace) const {
  ops::validate_run(problem(), tensors, workspace, workspace_bytes(), backend_->device());
  if (problem().queries == 0 || problem().batch == 0) {
    return;
  }
  const auto in_order = strategies::attention::in_order(tensors);
  backend_->run(stream, {in_order, workspace});
}

AttentionStatus Attention::status(Stream stream, const void* workspace) const {
  ops::check_workspace(workspace, workspace_bytes());
  if (problem().queries == 0 || problem().batch == 0) {
    return {};
  }
  return backend_->status(stream, workspace);
}

std::size_t Attention::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& Attention::strategy() const { return backend_->strategy(); }
const AttentionProblem& Attention::problem() const { return backend_->problem(); }

std::vector<std::string> attention_strategies(const Device& device) {
  return names(strategies::attention::registry().of(device.kind()), [](const auto&) { return true; });
}

}  // namespace thresher
