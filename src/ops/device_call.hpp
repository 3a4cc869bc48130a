#pragma once
/// A planned call on the device that it was planned for: loaded on a GPU, its functions on the CPU.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>

#include "ops/cuda_call.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/device.hpp"

namespace thresher::ops {

class DeviceCall {
 public:
  /// `example` and errors are as CudaCall says.
  DeviceCall(DeviceId device, strategies::PlannedCall call, const strategies::CallTensors& example = {});

  /// The steps from `first_step` up to, but without, `last_step`: enqueued, as CudaCall says, or done on return.
  void run(Stream stream, const strategies::CallTensors& tensors, std::size_t first_step = 0,
           std::size_t last_step = std::numeric_limits<std::size_t>::max()) const;

  [[nodiscard]] const strategies::PlannedCall& planned() const noexcept;
  [[nodiscard]] std::size_t workspace_bytes() const;

 private:
  std::variant<CudaCall, strategies::PlannedCall> call_;
};

/// All flags of the status (strategies/status_words.hpp) at the beginning of so many bytes of a workspace on `device`,
/// once `stream` has come so far.
[[nodiscard]] std::uint32_t status_flags(Stream stream, const void* workspace, std::size_t bytes, DeviceId device);

}  // namespace thresher::ops
