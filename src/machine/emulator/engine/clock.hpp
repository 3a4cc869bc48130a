#pragma once
/// Vector clocks: the events that an agent knows to have happened.
///
/// A lane is an agent whose actions are ordered. It is a thread, the phases of one mbarrier, the wgmma groups of a
/// warpgroup, or the copy groups of a thread. (All asynchronous bytes of one phase become known together.) An action
/// has a lane and that lane's clock. It happened before an agent's next action iff the agent's clock for the lane has
/// reached the action's.
#include <cstdint>
#include <vector>

namespace thresher::emulator {

using Lane = std::uint16_t;

class VectorClock {
 public:
  [[nodiscard]] std::uint32_t at(Lane lane) const { return lane < ticks_.size() ? ticks_[lane] : 0; }
  [[nodiscard]] bool empty() const { return ticks_.empty(); }
  void clear() { ticks_.clear(); }

  /// Raises one lane; true if that changed it.
  bool raise(Lane lane, std::uint32_t tick) {
    if (lane >= ticks_.size()) {
      ticks_.resize(lane + std::size_t{1}, 0);
    }
    if (ticks_[lane] >= tick) {
      return false;
    }
    ticks_[lane] = tick;
    return true;
  }
  /// The maximum of both, lane by lane.
  void join(const VectorClock& other);
  /// The minimum of both, lane by lane.
  void meet(const VectorClock& other);

 private:
  std::vector<std::uint32_t> ticks_;
};

/// The events that an agent knows. Also, which of the ordinary writes to shared memory among them were followed by a
/// proxy fence in the writing thread. There is no such fence for global memory.
struct Knowledge {
  VectorClock seen;
  VectorClock fenced_shared;

  void join(const Knowledge& other) {
    seen.join(other.seen);
    fenced_shared.join(other.fenced_shared);
  }
  void meet(const Knowledge& other) {
    seen.meet(other.seen);
    fenced_shared.meet(other.fenced_shared);
  }
  void clear() {
    seen.clear();
    fenced_shared.clear();
  }
};

}  // namespace thresher::emulator
