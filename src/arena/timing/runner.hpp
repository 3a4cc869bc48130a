#pragma once
/// A contestant bound to a problem and its input sets: the object that is timed.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "thresher/device.hpp"

namespace thresher::arena {

class Runner {
 public:
  Runner() : id_(next_id()) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  virtual ~Runner() = default;

  /// Computes the outputs of input set `set`. Asynchronous and capturable on a GPU, complete on return on the CPU.
  virtual void run(Stream stream, std::size_t set) = 0;

  /// Sentences about writes outside the runner's own buffers (its workspace); empty when there are none.
  [[nodiscard]] virtual std::vector<std::string> guard_damage() const { return {}; }

  /// Unique in this process, never reused: a clock may cache captures under this key.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  std::uint64_t id_;
};

}  // namespace thresher::arena
