#pragma once
/// State that a contestant may not leave changed for those after it.
#include <sched.h>

#include <cstdint>
#include <string>

namespace thresher::arena {

/// State of the calling thread and of its process. A device's state is restored by its rig.
class Environment {
 public:
  /// Records the present state.
  Environment();
  /// Restores the recorded state as far as an ordinary user may. Returns the end of a sentence about the changes, "left
  /// subnormal numbers flushed to zero"; empty when there are none.
  [[nodiscard]] std::string restore() const;

 private:
  std::uint32_t floating_point_;
  cpu_set_t processors_{};
  int priority_;
  int threads_of_a_team_;  ///< of OpenMP; 0 where it is not loaded
};

}  // namespace thresher::arena
