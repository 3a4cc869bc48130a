#pragma once
/// A planned call on a GPU: loaded once, launched many times. strategies::PlannedCall decides everything: the launches,
/// their extents and their order.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "ops/product_choice.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/device.hpp"

namespace thresher::ops {

/// Stands for the unknown memory of a tensor (CudaCall's `example`): aligned as device memory is, and never followed.
inline void* stand_in_address() { return reinterpret_cast<void*>(std::uintptr_t{256}); }

/// Loads the programs of all calls. Those that must be compiled are compiled in parallel.
void load_programs(int ordinal, std::span<const PlannedRows> calls);

class CudaCall {
 public:
  /// Loads every kernel of `call`, alternatives included, chooses the library's products and encodes the tensor maps of
  /// weights. `example` holds the weights themselves, and stand_in_address() for the data of the other tensors. It may
  /// be empty for a call without weights. Throws Error(unsupported) if a program must be compiled and NVRTC is missing,
  /// and Error(invalid_argument) for weights that the TMA cannot address.
  CudaCall(strategies::PlannedCall call, int ordinal, const strategies::CallTensors& example);
  CudaCall(CudaCall&&) noexcept;
  ~CudaCall();

  /// Enqueues the steps from `first_step` up to, but without, `last_step`. Allocates nothing, waits for nothing, may be
  /// captured in a graph and called from several threads. The tensors are validated, on this GPU, and of at most the
  /// planned rows; `tensors.workspace` is aligned to 256 bytes and has workspace_bytes().
  void run(Stream stream, const strategies::CallTensors& tensors, std::size_t first_step = 0,
           std::size_t last_step = std::numeric_limits<std::size_t>::max()) const;

  [[nodiscard]] const strategies::PlannedCall& planned() const noexcept { return call_; }
  /// The bytes of the plan, and behind them those of the library's products.
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }

 private:
  struct LoadedStep;

  strategies::PlannedCall call_;
  int ordinal_;
  std::vector<std::unique_ptr<const LoadedStep>> steps_;  ///< of call_.steps, in their order
  std::size_t workspace_bytes_;
};

/// A planned call on the device that it was planned for: loaded on a GPU, its functions on the CPU.
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

/// All flags of the status (strategies/status_words.hpp) at the beginning of `bytes` of a workspace on `device`. Waits
/// for `stream`.
[[nodiscard]] std::uint32_t status_flags(Stream stream, const void* workspace, std::size_t bytes, DeviceId device);

}  // namespace thresher::ops
