#pragma once
/// Devices that can run an operation.
#include <string>
#include <vector>

#include "thresher/tensor.hpp"

namespace thresher {

/// A CPU or one GPU. Cheap to copy. A GPU is used in its primary context, which is kept until the process ends. A call
/// makes it current on the calling thread, and restores the previous context before it returns.
class Device {
 public:
  /// The first usable GPU if there is one, otherwise this CPU.
  static Device best();
  static Device cpu();
  /// Throws Error(device) with what is missing when GPU `ordinal` cannot be used.
  static Device cuda(int ordinal = 0);
  /// "cpu", "gpu" (the first), "cuda:1" or "best". Throws Error(invalid_argument) for any other name.
  static Device named(const std::string& name);

  [[nodiscard]] DeviceId id() const noexcept { return id_; }
  [[nodiscard]] DeviceKind kind() const noexcept { return id_.kind; }
  /// The model name as the system reports it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  Device(DeviceId id, std::string name) : id_(id), name_(std::move(name)) {}
  DeviceId id_;
  std::string name_;
};

/// The stream that `run` enqueues on. On a GPU it belongs to the device's primary context, which the CUDA runtime uses
/// too. The CPU ignores it: `run` is synchronous there.
struct Stream {
  void* handle = nullptr;  ///< a cudaStream_t, which is a CUstream; null: the legacy default stream
};

}  // namespace thresher
