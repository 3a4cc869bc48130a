#pragma once
/// The machine a tournament runs on: one device with its memory, its clock and what is known of it.
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
  /// Where calls that are not timed go.
  [[nodiscard]] virtual Stream stream() = 0;
  /// Until the device is idle; throws Error(device) when something failed.
  virtual void wait() = 0;
  /// Until everything on `stream` is done, whatever goes on elsewhere on the device.
  virtual void wait_for_stream() { wait(); }
  /// Keeps `stream` busy for so long from now on, and nothing else. False where calls are complete on return.
  virtual bool hold_stream(double /*microseconds*/) { return false; }
  [[nodiscard]] virtual std::size_t last_level_cache_bytes() const = 0;
  /// Leaves nothing of anybody's data in the caches, as far as the machine lets a user.
  virtual void flush_caches() {}
  /// Makes the device as those that come next expect to find it. One sentence about what a contestant had left changed;
  /// empty when nothing was, as far as that can be told.
  virtual std::string restore() { return {}; }
  /// Measured on the first call.
  [[nodiscard]] virtual const Ceilings& ceilings() = 0;
  [[nodiscard]] virtual Machine machine() const = 0;
};

[[nodiscard]] std::unique_ptr<Rig> cpu_rig();

/// "cpu", "gpu", "cuda:1" or "best". Throws Error when there is no such device.
[[nodiscard]] std::unique_ptr<Rig> make_rig(const std::string& device);

}  // namespace thresher::arena
