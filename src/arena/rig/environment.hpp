#pragma once
/// What a contestant may find but not leave changed for those that come after it.
#include <sched.h>

#include <cstdint>
#include <string>

namespace thresher::arena {

/// Of the calling thread, and of its process. What lies on a device is put right by its rig.
class Environment {
 public:
  /// As it is now.
  Environment();
  /// One sentence's end about what is no longer as it was, "left subnormal numbers flushed to zero"; empty when all is.
  /// What was changed is put right, as far as an ordinary user may.
  [[nodiscard]] std::string restore() const;

 private:
  std::uint32_t floating_point_;
  cpu_set_t processors_{};
  int priority_;
  int threads_of_a_team_;  ///< of OpenMP; 0 where nobody uses it
};

}  // namespace thresher::arena
