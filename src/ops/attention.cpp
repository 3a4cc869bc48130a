#include "thresher/attention.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "ops/attention_call.hpp"
#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/product_choice.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_attention.hpp"
#include "planner/choose_steady.hpp"
#include "runtime/driver.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

DeviceSpec table_of(const Device& device) {
  if (device.kind() == DeviceKind::cpu) {
    return cpu_device_spec();
  }
  if (const DeviceSpec spec = cuda_device_spec(device.id().ordinal); spec.matrix_unit != MatrixUnit::none) {
    return spec;
  }
  const runtime::DeviceProperties& properties = runtime::device_properties(device.id().ordinal);
  throw Error(ErrorCode::unsupported,
              fmt::format("attention runs on GPUs of compute capability 9.0 (Hopper), {} has {}.{}: plan on "
                          "Device::cpu()",
                          properties.name, properties.capability_major, properties.capability_minor));
}

}  // namespace

planner::Request request_of(const AttentionOptions& options, DeviceKind kind) {
  planner::Request request{options.strategy, options.knobs};
  if (kind == DeviceKind::cpu) {
    set_threads(options.threads, request.knobs);
  }
  if (kind == DeviceKind::cuda && options.dependent_launch) {
    set_from_option("dependent_launch", "true", request.knobs);
  }
  set_deterministic(options.deterministic, request);
  return request;
}

planner::Choices attention_choices(const AttentionProblem& problem, const AttentionOptions& options,
                                   const DeviceSpec& device, DeviceKind kind) {
  const auto all = strategies::attention::registry().of(kind);
  const planner::Request request = request_of(options, kind);
  return request.steady ? planner::choose_steady(all, problem, std::span(&problem, 1), request, device)
                        : planner::choose(all, problem, request, device);
}

strategies::PlannedCall attention_call(const AttentionProblem& problem, const AttentionOptions& options,
                                       const DeviceSpec& device, DeviceKind kind, const CallObstacle& obstacle) {
  const auto all = strategies::attention::registry().of(kind);
  const planner::Choices choices = attention_choices(problem, options, device, kind);
  std::vector<std::string> reasons;
  if (auto call = planner::first_without_obstacle(all, problem, choices, device, obstacle, reasons)) {
    return *std::move(call);
  }
  for (const planner::RefusedStrategy& refused : choices.refused) {
    reasons.push_back(fmt::format("{}: {}", refused.strategy, fmt::join(refused.infeasible_reasons, "; ")));
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("no strategy of attention can run this problem: {}", fmt::join(reasons, "; ")));
}

strategies::PlannedCall attention_call(const AttentionProblem& problem, const AttentionOptions& options,
                                       const Device& device) {
  return attention_call(problem, options, table_of(device), device.kind(), program_obstacle(device));
}

std::string attention_obstacle(const Device& device, const AttentionProblem& problem, const AttentionOptions& options) {
  try {
    (void)attention_call(problem, options, device);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace thresher::ops

namespace thresher {

class Attention::Backend {
 public:
  Backend(const AttentionProblem& problem, DeviceId device, strategies::PlannedCall call)
      : problem_(problem), device_(device), call_(device, std::move(call)) {}

  [[nodiscard]] const AttentionProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  [[nodiscard]] const ops::DeviceCall& call() const noexcept { return call_; }
  /// All flags of the status in the workspace, once the stream has come so far.
  [[nodiscard]] AttentionStatus status(Stream stream, const void* workspace) const {
    AttentionStatus status;
    for (const strategies::WorkspacePiece& piece : call_.planned().workspace) {
      if (strategies::attention::is_status(piece)) {
        const void* words = static_cast<const std::byte*>(workspace) + piece.offset;
        status.flags |= ops::status_flags(stream, words, piece.bytes, device_);
      }
    }
    return status;
  }

 private:
  AttentionProblem problem_;
  DeviceId device_;
  ops::DeviceCall call_;
};

Attention plan(const Device& device, const AttentionProblem& problem, const AttentionOptions& options) {
  ops::validate(problem);
  ops::check_threads(options.threads);
  return Attention(
      std::make_shared<const Attention::Backend>(problem, device.id(), ops::attention_call(problem, options, device)));
}

void Attention::run(Stream stream, const AttentionTensors& tensors, void* workspace) const {
  ops::validate_run(problem(), tensors, workspace, workspace_bytes(), backend_->device());
  if (problem().queries == 0 || problem().batch == 0) {
    return;
  }
  const auto in_order = strategies::attention::in_order(tensors);
  backend_->call().run(stream, {in_order, workspace});
}

AttentionStatus Attention::status(Stream stream, const void* workspace) const {
  ops::check_workspace(workspace, workspace_bytes());
  if (problem().queries == 0 || problem().batch == 0) {
    return {};
  }
  return backend_->status(stream, workspace);
}

std::size_t Attention::workspace_bytes() const { return backend_->call().workspace_bytes(); }
const std::string& Attention::strategy() const { return backend_->call().planned().strategy; }
const AttentionProblem& Attention::problem() const { return backend_->problem(); }

std::vector<std::string> attention_strategies(const Device& device) {
  return planner::strategy_names<AttentionProblem>(strategies::attention::registry().of(device.kind()));
}

}  // namespace thresher
