#pragma once
/// The happens-before knowledge of agents: the lanes of a cluster's agents, and releases between clusters.
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "machine/emulator/engine/state.hpp"

namespace thresher::emulator {

/// The agent whose actions a lane orders.
struct LaneOwner {
  enum class What : std::uint8_t {
    thread,
    barrier,
    products,
    stores_read,
    stores_written,
    copies,
    earlier_grid,
    release,
    tensor_uses,  ///< a thread's allocations and loads
    tensor_pipe   ///< a thread's tcgen05 instructions
  };
  What what = What::thread;
  const void* object = nullptr;
};

/// A release in global memory that other clusters may acquire: the releasing thread's knowledge.
struct GlobalRelease {
  std::uint32_t cluster;
  VectorClock seen;
};

class Ordering {
 public:
  explicit Ordering(const Cluster& cluster) : cluster_(cluster) {}

  /// Gives the threads of a new cluster their lanes, and the earlier grid a lane.
  void start_cluster();
  Lane new_lane(LaneOwner owner);
  [[nodiscard]] const LaneOwner& owner(Lane lane) const { return lanes_[lane]; }
  [[nodiscard]] std::size_t lanes() const { return lanes_.size(); }
  [[nodiscard]] Lane earlier_grid() const { return earlier_grid_; }

  /// Everything `thread` does from now on is later than its earlier actions.
  static void tick(Thread& thread) { thread.knowledge.seen.raise(thread.lane(), thread.clock() + 1); }
  static void learn(Thread& thread, const Knowledge& news);
  static void learn(Thread& thread, Lane lane, std::uint32_t clock);
  /// Adds the knowledge and the actions of `thread` to `into`.
  static void release(Thread& thread, Knowledge& into);
  /// A later acquire of the word at `address`, in this cluster or another, learns the knowledge of `thread`.
  void release(Thread& thread, std::uint64_t address);
  void acquire(Thread& thread, std::uint64_t address);

  [[nodiscard]] Access access(const Thread& thread, AccessKind kind, std::uint32_t site_number) const;
  /// A thread's fence covers its own stores. It also covers cp.async writes of any thread that this thread knows to be
  /// complete.
  void fence_async(const Thread& thread, VectorClock& fenced) const;
  [[nodiscard]] bool ordered_across_clusters(const Access& earlier, const VectorClock& seen) const;

 private:
  const Cluster& cluster_;
  std::vector<LaneOwner> lanes_;
  Lane earlier_grid_ = 0;
  std::map<std::uint64_t, std::deque<GlobalRelease>> releases_;  // by global address
  std::map<const GlobalRelease*, Lane> acquired_;  // releases of other clusters that have a lane in this one
};

}  // namespace thresher::emulator
