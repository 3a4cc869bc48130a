#include "thresher/append.hpp"

#include <optional>
#include <utility>

#include "cpu/append.hpp"
#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_append.hpp"
#include "strategies/append/call.hpp"
#include "strategies/append/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher {

class Append::Backend {
 public:
  /// `threads` of the CPU; `call` is empty there.
  Backend(const AppendProblem& problem, DeviceId device, int threads, std::optional<ops::CudaCall> call)
      : problem_(problem), device_(device), threads_(threads), on_gpu_(std::move(call)) {}

  [[nodiscard]] const AppendProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  /// Enqueues one call. The tensors are validated, and there is at least one token.
  void run(Stream stream, const AppendTensors& tensors) const {
    if (on_gpu_) {
      const auto in_order = strategies::append::in_order(tensors);
      on_gpu_->run(stream, {in_order});
    } else {
      cpu::append(problem_, tensors, threads_);
    }
  }

 private:
  AppendProblem problem_;
  DeviceId device_;
  int threads_;
  std::optional<ops::CudaCall> on_gpu_;
};

Append plan(const Device& device, const AppendProblem& problem, const AppendOptions& options) {
  ops::validate(problem);
  ops::check_threads(options.threads);
  std::optional<ops::CudaCall> call;
  if (device.kind() == DeviceKind::cuda) {
    const DeviceSpec spec = ops::spec_of(device);
    if (const std::optional<std::string> obstacle = strategies::append::obstacle(problem, spec)) {
      throw Error(ErrorCode::unsupported, *obstacle);
    }
    call.emplace(strategies::append::append_call(problem, spec), device.id().ordinal, strategies::CallTensors{});
  }
  return Append(std::make_shared<const Append::Backend>(problem, device.id(), options.threads, std::move(call)));
}

void Append::run(Stream stream, const AppendTensors& tensors) const {
  ops::validate_run(problem(), tensors, backend_->device());
  if (tensors.k.shape[0] > 0) {
    backend_->run(stream, tensors);
  }
}

const AppendProblem& Append::problem() const noexcept { return backend_->problem(); }

}  // namespace thresher
