#pragma once
/// The machine a tournament runs on: one device with its memory, its clock and what is known of it.
#include <cstddef>
#include <memory>
#include <string>

#include "arena/rig/memory.hpp"
#include "arena/timing/clock.hpp"
#include "thresher/device.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// What the machine can do at best, for floors; 0 where it is not known.
struct Ceilings {
  double peak_operations_per_s = 0;       ///< of the matrix unit at the highest clock, from the data sheet
  double sustained_operations_per_s = 0;  ///< measured on the day
  double bytes_per_s = 0;                 ///< of memory, measured
  std::string method;                     ///< how these were found
  double fast_rate = 1;                   ///< how many times as fast is the matrix unit of numerics `fast`
  /// What `operations_per_s` is for a contestant of these numerics.
  [[nodiscard]] double rate(double operations_per_s, Numerics numerics) const noexcept {
    return numerics == Numerics::fast ? fast_rate * operations_per_s : operations_per_s;
  }
};

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
  /// Measured on the first call.
  [[nodiscard]] virtual const Ceilings& ceilings() = 0;
  /// JSON object that describes the machine.
  [[nodiscard]] virtual std::string machine_json() const = 0;
};

[[nodiscard]] std::unique_ptr<Rig> cpu_rig();

/// "cpu", "gpu", "cuda:1" or "best". Throws Error when there is no such device.
[[nodiscard]] std::unique_ptr<Rig> make_rig(const std::string& device);

}  // namespace thresher::arena
