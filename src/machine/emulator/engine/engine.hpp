#pragma once
/// The state of one launch. Internal to the emulator; kernels and users see launch.hpp and the vocabulary.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/emulator/engine/async.hpp"
#include "machine/emulator/engine/clock.hpp"
#include "machine/emulator/engine/fiber.hpp"
#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/shadow.hpp"
#include "machine/types.hpp"

namespace thresher::machine {
class FragmentShadow;
}

namespace thresher::emulator {

using machine::Site;

struct Block;
struct Thread;
class Engine;

/// Why a thread does not run. `object` and the numbers mean what `what` says; deadlock reports print them.
struct Wait {
  enum class What : std::uint8_t {
    nothing,
    barrier,          // object: Mbarrier, number: parity
    block_barrier,    // object: BlockBarrier, number: id
    cluster_barrier,  //
    warp,             // object: WarpMeeting
    products,         // number: group of wgmma
    stores_read,      // number: group of TMA stores
    stores_written,   //
    copies,           // number: group of cp.async
    registers,        // object: Block, number: registers asked for
    memory,           // polls
  };
  What what = What::nothing;
  std::uint32_t site = 0;
  std::uint64_t number = 0;
  const void* object = nullptr;
};

struct Mbarrier {
  Block* block = nullptr;
  std::uint32_t offset = 0;
  Lane lane = 0;  // clock: completed phases
  bool live = false;
  std::uint32_t expected = 0;  // arrivals of each phase
  std::uint32_t pending = 0;   // arrivals that the current phase still awaits
  std::int64_t bytes = 0;      // bytes it still awaits; negative when more came than were announced
  std::uint32_t phase = 0;     // completed ones
  std::uint64_t in_flight_bytes = 0;
  std::uint32_t in_flight_site = 0;  // of the last copy announced, with its call and thread
  const char* in_flight_call = "";
  const Thread* in_flight_thread = nullptr;
  Knowledge arriving;   // released by arrivals of the current phase
  Knowledge completed;  // by those of all completed ones
  Access init;
  bool published = false;                     // fence::barrier_init followed the init
  std::uint64_t published_cluster_phase = 0;  // arrivals its thread had made at the cluster barrier by then
  std::uint32_t first_phase = 0;              // value of `phase` at the init
  const char* name = nullptr;
  std::uint32_t index = 0;
  std::vector<Thread*> waiters;
};

/// A meeting of the block's threads: block::sync and the named barriers.
struct BlockBarrier {
  std::uint32_t threads = 0;  // of the current round; 0 before its first arrival
  std::vector<Thread*> arrived;
  std::vector<Thread*> waiters;
  Knowledge arriving;
  std::uint32_t site = 0;
};

/// The threads of a warp exchanging words.
struct WarpMeeting {
  const char* call = nullptr;
  std::uint32_t site = 0;
  std::uint32_t mask = 0;
  std::uint32_t arrived = 0;
  std::array<std::uint64_t, 32> given{};
  std::array<std::uint64_t, 32> taken{};  // what was given in the last complete meeting
  std::uint64_t round = 0;
  Knowledge arriving;
};

struct Warp {
  std::array<Thread*, 32> lanes{};
  std::uint32_t first_thread = 0;
  std::uint32_t present = 0;                      // mask of lanes that exist
  std::map<std::uint32_t, WarpMeeting> meetings;  // by mask
};

/// Asynchronous work of one agent in numbered groups, complete in order.
struct Groups {
  std::uint32_t issued = 0;  // pieces of work
  std::uint32_t done = 0;
  std::vector<std::uint32_t> ends;  // pieces issued when group i was closed
  [[nodiscard]] std::uint32_t closed() const { return static_cast<std::uint32_t>(ends.size()); }
  /// Clock of the group that is open now.
  [[nodiscard]] std::uint32_t open_clock() const { return closed() + 1; }
  /// Pieces that must be done before the first `groups` groups are complete.
  [[nodiscard]] std::uint32_t needed(std::uint32_t groups) const { return groups == 0 ? 0 : ends[groups - 1]; }
};

struct Warpgroup {
  Block* block = nullptr;
  std::uint32_t index = 0;
  Lane lane = 0;  // 0 until the first product: lane 0 is a thread's
  Groups groups;
  AsyncQueue forming;  // products that not all threads have issued yet, the oldest first: number groups.issued
  AsyncQueue queue;    // those in flight
  std::array<Knowledge, 4> warp_knowledge;  // of each warp's threads at their latest multiply
  Knowledge common;                         // what all four warps know
  bool common_is_stale = true;
  std::vector<Thread*> waiters;
};

struct TmaStores {
  Lane read_lane = 0;
  Lane written_lane = 0;
  Groups groups;              // done: pieces that have read
  std::uint32_t written = 0;  // pieces that have written
  std::uint32_t waited = 0;   // groups known to have read
  AsyncQueue queue;
};

struct AsyncCopies {
  Lane lane = 0;
  Groups groups;
  std::uint32_t clock = 1;  // of the copies to come; every commit and arrival begins a new one
  std::vector<std::uint32_t> clock_of_group;
  AsyncQueue queue;
};

struct Thread {
  enum class State : std::uint8_t { runnable, blocked, polling, done };

  std::uint32_t index = 0;     // in the cluster; its lane
  std::uint32_t in_block = 0;  //
  Block* block = nullptr;
  Warp* warp = nullptr;
  Warpgroup* group = nullptr;
  Fiber fiber;
  State state = State::done;
  Wait wait;
  Knowledge knowledge;
  std::uint64_t news = 1;  // counts what was learnt
  const char* role = nullptr;
  std::uint32_t role_index = 0;
  std::uint32_t registers = 0;
  std::uint64_t cluster_arrivals = 0;
  std::uint64_t cluster_waits = 0;
  std::shared_ptr<const VectorClock> executed;  // what the cluster's threads had done before the last one it waited for
  std::uint32_t plain_accesses = 0;             // since it last let others run
  std::uint32_t yields = 0;                     // for the sake of plain accesses, since it last synchronised
  std::uint64_t polled_address = 0;             // of its last acquiring load
  std::uint64_t polled_word = 0;
  // wgmma
  std::uint32_t product_fences = 0;
  std::uint32_t products_issued = 0;
  std::uint32_t products_closed = 0;  // groups
  std::uint32_t products_waited = 0;  // groups
  std::uint64_t news_at_product = 0;
  std::vector<const machine::FragmentShadow*> fragments;  // that multiplies in flight read
  std::unique_ptr<TmaStores> stores;
  std::unique_ptr<AsyncCopies> copies;

  [[nodiscard]] Lane lane() const { return static_cast<Lane>(index); }
  [[nodiscard]] std::uint32_t clock() const { return knowledge.seen.at(lane()); }
};

struct NamedBytes {
  std::uint32_t offset;
  std::uint32_t bytes;
  const char* name;
  std::uint32_t index;
};

struct Block {
  std::uint32_t rank = 0;  // in the cluster
  Extent at;               // in the grid
  std::vector<std::uint8_t> bytes;
  Shadow shadow;
  std::map<std::uint32_t, std::unique_ptr<Mbarrier>> barriers;  // by offset
  std::array<BlockBarrier, 16> named;
  std::vector<Warp> warps;
  std::vector<Warpgroup> groups;
  std::vector<NamedBytes> names;
  std::uint32_t first_thread = 0;
  std::uint32_t running = 0;
  std::int64_t free_registers = 0;
  std::vector<Thread*> register_waiters;
  VectorClock remote_uses;  // latest access of other blocks' agents to these bytes
  std::uint32_t remote_use_site = 0;
  Access last_remote;
};

/// Whose actions a lane orders.
struct LaneOwner {
  enum class What : std::uint8_t {
    thread,
    barrier,
    products,
    stores_read,
    stores_written,
    copies,
    earlier_grid,
    release
  };
  What what = What::thread;
  const void* object = nullptr;
};

/// Thrown through a thread's stack to end it when the launch stops.
struct StopThread {};

/// A release in global memory that other clusters may acquire: what the releasing thread knew.
struct GlobalRelease {
  std::uint32_t cluster;
  VectorClock seen;
};

struct GlobalBuffer {
  const GlobalMemory::Buffer* buffer;
  std::unique_ptr<Shadow> shadow;  // none for inputs
};

class Engine final : public ConflictSink {
 public:
  Engine(const LaunchShape& shape, const Options& options, const GlobalMemory& memory,
         const std::function<void()>& kernel);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  Report run();

  /// The engine and thread that run now on this host thread.
  static Engine& current();
  static Thread& self();
  static Thread* running_thread();

  // Order.
  std::uint32_t site(Site site);
  Lane new_lane(LaneOwner owner);
  /// Everything `thread` does from now on is later than what it did.
  static void tick(Thread& thread) { thread.knowledge.seen.raise(thread.lane(), thread.clock() + 1); }
  static void learn(Thread& thread, const Knowledge& news);
  static void learn(Thread& thread, Lane lane, std::uint32_t clock);
  /// `into` learns what `thread` knows and has done.
  static void release(Thread& thread, Knowledge& into);
  Access access(const Thread& thread, AccessKind kind, std::uint32_t site_number) const;

  // Threads.
  /// Suspends until wake(); throws StopThread when the launch stops.
  void block(Thread& thread, Wait wait);
  void wake(Thread& thread);
  /// A place where another thread may run first.
  void pause(Thread& thread);
  /// A failed attempt that the thread will repeat: others go first; a deadlock when nobody makes progress any more.
  void poll(Thread& thread, Wait wait);
  void progress() {
    ++progress_;
    spun_accesses_ = 0;
  }
  /// After so many plain accesses in a row: others go first; too many by all threads together are a deadlock.
  void spin(Thread& thread, std::uint32_t accesses);

  // Findings.
  void report(FindingKind kind, std::string sentence, std::vector<std::string> details = {});
  /// Reports once for each `key`.
  bool first_time(FindingKind kind, std::uint32_t site_number, std::uint64_t key);
  /// Reports and ends the launch. Throws StopThread in a thread; returns when asynchronous work found it.
  void fatal(FindingKind kind, std::string sentence, std::vector<std::string> details = {});
  [[nodiscard]] bool stopping() const { return stopping_; }
  void conflict(const Conflict& found) override;
  [[nodiscard]] bool ordered_across_clusters(const Access& earlier, const VectorClock& seen) const override;

  // Words for findings.
  [[nodiscard]] std::string at(std::uint32_t site_number) const;
  [[nodiscard]] std::string words(const Thread& thread) const;
  [[nodiscard]] std::string words(const Block& block) const;
  [[nodiscard]] std::string words(const Mbarrier& barrier) const;
  [[nodiscard]] std::string words(const Warpgroup& group) const;
  [[nodiscard]] std::string words(const Access& access) const;
  [[nodiscard]] std::string words(const Wait& wait) const;
  [[nodiscard]] std::string words_of_flight(const Mbarrier& barrier) const;
  [[nodiscard]] std::string shared_words(const Block& block, std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] std::string global_words(const GlobalBuffer& buffer, std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] std::string threads_words(const std::vector<const Thread*>& threads) const;

  // Memory.
  Block& block_of(std::uint32_t address);
  /// The bytes at `address`, checked for range and alignment; fatal otherwise (then null).
  std::uint8_t* shared_bytes(std::uint32_t address, std::uint64_t bytes, std::uint32_t alignment, const char* call,
                             std::uint32_t site_number);
  void check_shared(Block& block, std::uint64_t offset, std::uint64_t bytes, const Observer& observer);
  GlobalBuffer* global_buffer(std::uint64_t address, std::uint64_t bytes, std::uint32_t alignment, const char* call,
                              std::uint32_t site_number);
  void check_global(GlobalBuffer& buffer, std::uint64_t address, std::uint64_t bytes, const Observer& observer);
  Mbarrier& barrier_at(std::uint32_t address, const char* call, std::uint32_t site_number);
  void fence_async(Thread& thread, VectorClock& fenced) const;
  void check_published(Thread& thread, Mbarrier& barrier, bool needs_fence, const char* call,
                       std::uint32_t site_number);
  void complete_bytes(Mbarrier& barrier, std::uint64_t bytes);
  void expect_bytes(Mbarrier& barrier, std::uint32_t bytes, std::uint32_t site_number);
  void arrive(Mbarrier& barrier, std::uint32_t count, const Thread& thread, const char* what,
              std::uint32_t site_number);
  void wake_register_waiters(Block& block);

  void note_remote(Block& target, const Access& use);
  void require_started(Thread& thread, Block& target, const char* call, std::uint32_t site_number);

  LaunchShape shape;
  Options options;
  Random random;
  AsyncEngine async;
  Statistics statistics;
  std::vector<std::unique_ptr<Block>> blocks;  // of the cluster
  std::vector<std::unique_ptr<Thread>> threads;
  Knowledge cluster_arriving;
  Knowledge cluster_completed;
  VectorClock cluster_executing;  // own clocks of the threads that have arrived, relaxed or not
  std::shared_ptr<const VectorClock> cluster_executed;
  std::uint32_t cluster_arrived = 0;
  std::uint64_t cluster_phase = 0;
  std::uint32_t running = 0;  // threads of the cluster that have not ended
  std::uint32_t cluster_serial = 0;
  std::map<std::uint64_t, std::deque<GlobalRelease>> releases;  // by global address
  Lane earlier_grid_lane = 0;

  void finish_cluster_phase_if_complete();
  /// Makes a release of another cluster known to `thread`.
  void acquire_release(Thread& thread, const GlobalRelease& release);

 private:
  bool launch_is_legal();
  void start_cluster(std::uint32_t x, std::uint32_t y, std::uint32_t z);
  void run_cluster();
  void end_cluster();
  void step();
  bool wake_pollers();
  void stop_threads();
  void thread_ended(Thread& thread);
  void check_block_end(Block& block);
  void report_deadlock();
  bool describe_partial_product(const Warpgroup& group, std::vector<std::string>& details) const;

  const std::function<void()>& kernel_;
  StackPool& stacks_;
  std::vector<GlobalBuffer> buffers_;
  std::size_t last_buffer_ = 0;
  Block* checked_block_ = nullptr;  // whose conflicts are being reported
  GlobalBuffer* checked_buffer_ = nullptr;
  ThreadQueue queue_;
  std::vector<LaneOwner> lanes_;
  std::map<const GlobalRelease*, Lane> acquired_;  // releases of other clusters that have a lane in this one
  std::vector<Site> sites_;
  std::unordered_map<std::uint64_t, std::uint32_t> site_numbers_;
  struct RecentSite {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };
  std::array<RecentSite, 256> recent_sites_{};
  std::vector<Finding> findings_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> reported_;
  std::uint64_t progress_ = 0;
  std::uint64_t progress_at_poll_ = 0;
  std::uint32_t idle_poll_rounds_ = 0;
  std::uint64_t spun_accesses_ = 0;  // plain accesses since anyone synchronised
  bool stopping_ = false;
};

}  // namespace thresher::emulator
