#include "ops/device_call.hpp"

#include <algorithm>
#include <vector>

#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "strategies/status_words.hpp"

namespace thresher::ops {
namespace {

using strategies::CallTensors;
using strategies::PlannedCall;

std::variant<CudaCall, PlannedCall> prepared(DeviceId device, PlannedCall call, const CallTensors& example) {
  if (device.kind == DeviceKind::cpu) {
    return call;
  }
  return CudaCall(std::move(call), device.ordinal, example);
}

}  // namespace

DeviceCall::DeviceCall(DeviceId device, PlannedCall call, const CallTensors& example)
    : call_(prepared(device, std::move(call), example)) {}

void DeviceCall::run(Stream stream, const CallTensors& tensors, std::size_t first_step, std::size_t last_step) const {
  if (const auto* const on_gpu = std::get_if<CudaCall>(&call_)) {
    on_gpu->run(stream, tensors, first_step, last_step);
    return;
  }
  const std::vector<strategies::Step>& steps = std::get<PlannedCall>(call_).steps;
  for (std::size_t i = first_step; i < std::min(last_step, steps.size()); ++i) {
    std::get<strategies::HostCall>(steps[i]).call(tensors);
  }
}

const PlannedCall& DeviceCall::planned() const noexcept {
  const auto* const on_gpu = std::get_if<CudaCall>(&call_);
  return on_gpu != nullptr ? on_gpu->planned() : *std::get_if<PlannedCall>(&call_);
}

std::size_t DeviceCall::workspace_bytes() const {
  const auto* const on_gpu = std::get_if<CudaCall>(&call_);
  return on_gpu != nullptr ? on_gpu->workspace_bytes() : planned().workspace_bytes();
}

std::uint32_t status_flags(Stream stream, const void* workspace, std::size_t bytes, DeviceId device) {
  const std::size_t max_words = bytes / sizeof(std::uint32_t);
  if (device.kind == DeviceKind::cpu) {
    return strategies::flags_in({static_cast<const std::uint32_t*>(workspace), max_words});
  }
  runtime::synchronize(stream, device.ordinal);
  std::uint32_t count = 0;
  runtime::copy(&count, workspace, sizeof count, device.ordinal);
  std::vector<std::uint32_t> words(std::min(std::size_t{count} + 1, max_words));
  runtime::copy(words.data(), workspace, words.size() * sizeof(std::uint32_t), device.ordinal);
  return strategies::flags_in(words);
}

}  // namespace thresher::ops
