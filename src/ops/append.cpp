#include "thresher/append.hpp"

#include <fmt/format.h>

#include "cpu/append.hpp"
#include "ops/append_backend.hpp"
#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_append.hpp"
#include "strategies/append/call.hpp"
#include "strategies/append/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

class CpuAppend final : public Append::Backend {
 public:
  CpuAppend(const AppendProblem& problem, DeviceId device, int threads) : Backend(problem, device), threads_(threads) {}
  void run(Stream, const AppendTensors& tensors) const override { cpu::append(problem(), tensors, threads_); }

 private:
  int threads_;
};

class CudaAppend final : public Append::Backend {
 public:
  CudaAppend(const AppendProblem& problem, DeviceId device, strategies::PlannedCall call)
      : Backend(problem, device), call_(std::move(call), device.ordinal, {}) {}
  void run(Stream stream, const AppendTensors& tensors) const override {
    const auto in_order = strategies::append::in_order(tensors);
    call_.run(stream, {in_order});
  }

 private:
  ops::CudaCall call_;
};

}  // namespace

Append plan(const Device& device, const AppendProblem& problem, const AppendOptions& options) {
  ops::validate(problem);
  ops::check_threads(options.threads);
  if (device.kind() == DeviceKind::cpu) {
    return Append(std::make_shared<CpuAppend>(problem, device.id(), options.threads));
  }
  const DeviceSpec spec = ops::spec_of(device);
  if (const std::optional<std::string> obstacle = strategies::append::obstacle(problem, spec)) {
    throw Error(ErrorCode::unsupported, *obstacle);
  }
  return Append(std::make_shared<CudaAppend>(problem, device.id(), strategies::append::append_call(problem, spec)));
}

void Append::run(Stream stream, const AppendTensors& tensors) const {
  ops::validate_run(problem(), tensors, backend_->device());
  if (tensors.k.shape[0] > 0) {
    backend_->run(stream, tensors);
  }
}

const AppendProblem& Append::problem() const noexcept { return backend_->problem(); }

}  // namespace thresher
