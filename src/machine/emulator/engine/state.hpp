#pragma once
/// The state of a running launch: the threads, blocks and barriers of the cluster that is being emulated. Plain data;
/// the other headers say which part may change it.
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "machine/emulator/engine/async.hpp"
#include "machine/emulator/engine/clock.hpp"
#include "machine/emulator/engine/fiber.hpp"
#include "machine/emulator/engine/launch_shape.hpp"
#include "machine/emulator/engine/shadow.hpp"
#include "machine/emulator/engine/tensor_state.hpp"
#include "machine/types.hpp"

namespace thresher::machine {
class FragmentShadow;
}

namespace thresher::emulator {

using machine::Site;

struct Block;
struct Thread;

/// Why a thread does not run. `what` gives the meaning of `object` and the numbers; deadlock reports print them.
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
    registers,        // object: Block, number: requested registers
    tensor_columns,   // object: Block, number: requested columns
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
  Lane lane = 0;               // clock: completed phases
  std::uint32_t expected = 0;  // arrivals of each phase
  std::uint32_t pending = 0;   // arrivals that the current phase still awaits
  std::int64_t bytes = 0;      // bytes it still awaits; negative when more came than were announced
  std::uint32_t phase = 0;     // completed ones
  std::uint64_t in_flight_bytes = 0;
  std::uint32_t in_flight_site = 0;  // of the last announced copy, with its call and thread
  const char* in_flight_call = "";
  const Thread* in_flight_thread = nullptr;
  Knowledge arriving;   // released by arrivals of the current phase
  Knowledge completed;  // by those of all completed phases
  Access init;
  bool published = false;                     // fence::barrier_init followed the init
  std::uint64_t published_cluster_phase = 0;  // arrivals that its thread had made at the cluster barrier before
  std::uint32_t first_phase = 0;              // value of `phase` at the init
  const char* name = nullptr;
  std::uint32_t index = 0;
  std::vector<Thread*> waiters;
};

/// A barrier of the block's threads: block::sync and the named barriers.
struct BlockBarrier {
  std::uint32_t threads = 0;  // of the current round; 0 before its first arrival
  std::vector<Thread*> arrived;
  std::bitset<max_block_threads> is_there;  // threads that have arrived, by number in the block
  std::vector<Thread*> waiters;
  Knowledge arriving;
  std::uint32_t site = 0;
};

/// An exchange of words among the threads of a warp.
struct WarpMeeting {
  const char* call = nullptr;
  std::uint32_t site = 0;
  std::uint32_t mask = 0;
  std::uint32_t arrived = 0;
  std::array<std::uint64_t, 32> given{};
  std::array<std::uint64_t, 32> taken{};  // the words of the last complete exchange
  std::uint64_t round = 0;
  Knowledge arriving;
};

/// One reallocation of a warp's registers.
struct HandOver {
  std::uint32_t count;
  bool increase;
  std::uint32_t site;
};

struct Warp {
  std::array<Thread*, 32> lanes{};
  std::uint32_t first_thread = 0;
  std::uint32_t present = 0;                      // mask of lanes that exist
  WarpMeeting whole;                              // of all lanes that are present
  std::map<std::uint32_t, WarpMeeting> meetings;  // of fewer lanes, by mask
  std::vector<HandOver> hand_overs;               // in order
  Lane tensor_lane = 0;           // of the first thread's uses of tensor memory; the other threads' lanes follow
  std::uint32_t tensor_uses = 0;  // clock of the latest
};

/// Asynchronous work of one agent in numbered groups, complete in order.
struct Groups {
  std::uint32_t issued = 0;  // pieces of work
  std::uint32_t done = 0;
  std::vector<std::uint32_t> ends;  // pieces issued when group i was closed
  [[nodiscard]] std::uint32_t closed() const { return static_cast<std::uint32_t>(ends.size()); }
  /// Clock of the open group.
  [[nodiscard]] std::uint32_t open_clock() const { return closed() + 1; }
  /// Pieces that must be done before the first `groups` groups are complete.
  [[nodiscard]] std::uint32_t needed(std::uint32_t groups) const { return groups == 0 ? 0 : ends[groups - 1]; }
};

struct Warpgroup {
  Block* block = nullptr;
  std::uint32_t index = 0;
  Lane lane = 0;                    // 0 until the first product: lane 0 is a thread's
  std::uint32_t first_product = 0;  // its line
  Groups groups;
  AsyncQueue forming;  // products that some threads have not issued yet, the oldest first: number groups.issued
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
  std::uint32_t clock = 1;  // of future copies; every commit and arrival begins a new one
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
  std::uint64_t news = 1;  // counts changes of its knowledge
  const char* role = nullptr;
  std::uint32_t role_index = 0;
  std::uint32_t registers = 0;
  std::uint64_t cluster_arrivals = 0;
  std::uint64_t cluster_waits = 0;
  std::shared_ptr<const VectorClock>
      executed;  // the actions of the cluster's threads before the last cluster barrier it waited for
  std::uint32_t plain_accesses = 0;  // since it last let others run
  std::uint32_t yields = 0;          // because of plain accesses, since it last synchronised
  std::uint64_t polled_address = 0;  // of its last acquiring load
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
  // tensor memory
  std::uint32_t tensor_uses = 0;     // allocations and loads of its warp that it has taken part in
  std::uint32_t tensor_arrived = 0;  // those that a wait has covered
  VectorClock tensor_seen;           // its knowledge at its latest after_barrier
  std::unique_ptr<TensorPipe> tensor_pipe;

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
  std::uint32_t threads = 0;
  std::uint32_t running = 0;
  std::int64_t free_registers = 0;
  std::vector<Thread*> register_waiters;
  VectorClock remote_uses;  // latest access of other blocks' agents to these bytes
  std::uint32_t remote_use_site = 0;
  Access last_remote;
  std::unique_ptr<TensorMemory> tensor_memory;  // from the first allocation on
  Multiprocessor* multiprocessor = nullptr;     // from the cluster's first allocation on
};

/// The cluster's own barrier.
struct ClusterBarrier {
  Knowledge arriving;
  Knowledge completed;
  VectorClock executing;  // own clocks of the threads that have arrived, relaxed or not
  std::shared_ptr<const VectorClock> executed;
  std::uint32_t arrived = 0;
  std::uint64_t phase = 0;
};

/// The blocks that run now. Clusters run one after the other.
struct Cluster {
  std::uint32_t serial = 0;  // number in the launch, from 1
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<std::unique_ptr<Thread>> threads;
  std::uint32_t running = 0;  // threads that have not ended
  ClusterBarrier barrier;
  Thread* current = nullptr;                    // the thread that runs now; null while asynchronous work completes
  std::uint32_t tensor_group = 0;               // blocks per tcgen05 instruction; 0 before the first
  std::vector<Multiprocessor> multiprocessors;  // from the first allocation on
  std::vector<Thread*> column_waiters;          // for columns of tensor memory
};

}  // namespace thresher::emulator
