#pragma once
/// Memory for the workspace of a plan.
#include <cstddef>
#include <memory>

#include "thresher/device.hpp"

namespace thresher {

/// Uninitialized memory of a device, aligned as `run` needs (256 bytes). Copies share it. It is released with the last
/// copy, which must outlive the pending runs and the captured graphs that use it.
class Workspace {
 public:
  /// Throws Error(out_of_memory).
  Workspace(const Device& device, std::size_t bytes);
  /// Null for 0 bytes.
  [[nodiscard]] void* data() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  class Memory;
  std::shared_ptr<const Memory> memory_;
};

}  // namespace thresher
