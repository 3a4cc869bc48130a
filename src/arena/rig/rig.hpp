#pragma once
/// The machine of a tournament: one device with its memory, its clock and its limits.
#include <cstddef>
#include <memory>
#include <string>

#include "arena/rig/ceilings.hpp"
#include "arena/rig/machine_info.hpp"
#include "arena/rig/memory.hpp"
#include "arena/timing/clock.hpp"
#include "thresher/device.hpp"

namespace thresher::arena {

class Rig {
 public:
  virtual ~Rig() = default;
  /// "cpu", "cuda:0".
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Device device() const = 0;
  [[nodiscard]] virtual Memory& memory() = 0;
  [[nodiscard]] virtual Clock& clock() = 0;
  /// The stream for calls that are not timed.
  [[nodiscard]] virtual Stream stream() = 0;
  /// Waits until the device is idle; throws Error(device) when something failed.
  virtual void wait() = 0;
  /// Waits until everything on `stream` is done, regardless of other work on the device.
  virtual void wait_for_stream() { wait(); }
  /// Keeps only `stream` busy for that long from now on. False where calls are complete on return.
  virtual bool hold_stream(double /*microseconds*/) { return false; }
  [[nodiscard]] virtual std::size_t last_level_cache_bytes() const = 0;
  /// Removes all data from the caches, as far as the machine lets a user.
  virtual void flush_caches() {}
  /// Restores the device's state for the next contestant. One sentence about the changes of the last contestant; empty
  /// when none is detected.
  virtual std::string restore() { return {}; }
  /// Measured on the first call.
  [[nodiscard]] virtual const Ceilings& ceilings() = 0;
  [[nodiscard]] virtual Machine machine() const = 0;
};

[[nodiscard]] std::unique_ptr<Rig> cpu_rig();

/// "cpu", "gpu", "cuda:1" or "best". Throws Error when there is no such device.
[[nodiscard]] std::unique_ptr<Rig> make_rig(const std::string& device);

}  // namespace thresher::arena
