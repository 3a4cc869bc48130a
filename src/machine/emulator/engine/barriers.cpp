// mbarriers: arrivals, bytes, phases.
#include "machine/emulator/engine/barriers.hpp"

#include <algorithm>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {
namespace {

constexpr std::uint32_t max_arrivals = (1U << 20) - 1;
constexpr std::int64_t max_bytes = (1 << 20) - 1;

}  // namespace

void Barriers::complete_phase_if_due(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) {
    return;
  }
  if (barrier.in_flight_bytes != 0) {
    findings_.report(
        FindingKind::byte_count,
        "a phase of " + words_.of(barrier) + " completes before all its copies have: too few bytes were announced",
        {"a copy under way was issued" + words_.at(barrier.in_flight_site)});
  }
  barrier.pending = barrier.expected;
  ++barrier.phase;
  barrier.arriving.seen.raise(barrier.lane, barrier.phase);
  barrier.completed.join(barrier.arriving);
  barrier.arriving.clear();
  scheduler_.progress();
  // Threads that wait for this phase learn its releases now; those of later phases are not for them yet.
  std::vector<Thread*> waiters;
  waiters.swap(barrier.waiters);
  for (Thread* waiter : waiters) {
    if ((barrier.phase - 1) % 2 == waiter->wait.number) {
      Ordering::learn(*waiter, barrier.completed);
      scheduler_.wake(*waiter);
    } else {
      barrier.waiters.push_back(waiter);
    }
  }
}

Mbarrier& Barriers::at(std::uint32_t address, const char* call, std::uint32_t site_number) {
  memory_.shared_bytes(address, 8, 8, call, site_number);
  Block& block = memory_.block_of(address);
  const auto found = block.barriers.find(address & 0xFFFFFFU);
  if (found == block.barriers.end()) {
    findings_.fatal(FindingKind::barrier_misuse, call + words_.at(site_number) + words_.by_current() + ": " +
                                                     words_.of_shared(block, address & 0xFFFFFFU, 8) +
                                                     " is no barrier: Barrier::init did not run before");
  }
  return *found->second;
}

void Barriers::check_published(const Thread& thread, const Mbarrier& barrier, bool needs_fence, const char* call,
                               std::uint32_t site_number) {
  const bool own = barrier.init.lane == thread.lane();
  const bool knows = own || thread.knowledge.seen.at(barrier.init.lane) >= barrier.init.clock ||
                     (barrier.published && thread.cluster_waits > barrier.published_cluster_phase);
  const auto use = [&] {
    return call + words_.at(site_number) + " by " + words_.of(thread) + " uses " + words_.of(barrier);
  };
  const auto before = [&] {
    return "before: initialised by " + words_.of(*cluster_.threads[barrier.init.lane]) + words_.at(barrier.init.site);
  };
  if (!knows && findings_.first_time(FindingKind::race, site_number, barrier.init.site)) {
    findings_.report(FindingKind::race, use() + " without knowing that it is initialised",
                     {before(), "a block or cluster barrier must come between"});
  } else if (needs_fence && !barrier.published &&
             findings_.first_time(FindingKind::missing_proxy_fence, site_number, barrier.init.site)) {
    findings_.report(FindingKind::missing_proxy_fence, use() + " from TMA or another block",
                     {before(), "fence::barrier_init did not follow the init"});
  }
}

void Barriers::arrive(Mbarrier& barrier, std::uint32_t count, const Thread& thread, const char* what,
                      std::uint32_t site_number) {
  if (count > barrier.pending) {
    findings_.fatal(FindingKind::arrival_count, what + words_.of(thread) + words_.at(site_number) + " arrives " +
                                                    std::to_string(count) + " times on " + words_.of(barrier) +
                                                    ", more than the phase still awaits");
    return;
  }
  barrier.pending -= count;
  complete_phase_if_due(barrier);
}

void Barriers::complete_bytes(Mbarrier& barrier, std::uint64_t bytes) {
  barrier.bytes -= static_cast<std::int64_t>(bytes);
  barrier.in_flight_bytes -= std::min(bytes, barrier.in_flight_bytes);
  complete_phase_if_due(barrier);
}

void Barriers::expect_bytes(Mbarrier& barrier, std::uint32_t bytes, std::uint32_t site_number) {
  barrier.bytes += bytes;
  if (barrier.bytes > max_bytes) {
    findings_.fatal(FindingKind::byte_count, "a barrier counts at most " + std::to_string(max_bytes) + " bytes; " +
                                                 words_.of(barrier) + words_.at(site_number));
  }
}

void Barriers::finish_cluster_phase_if_complete() {
  ClusterBarrier& barrier = cluster_.barrier;
  if (cluster_.running == 0 || barrier.arrived < cluster_.running) {
    return;
  }
  ++barrier.phase;
  barrier.arrived = 0;
  Knowledge complete;
  std::swap(complete, barrier.arriving);
  for (const auto& thread : cluster_.threads) {
    if (thread->state == Thread::State::blocked && thread->wait.what == Wait::What::cluster_barrier) {
      Ordering::learn(*thread, complete);
      scheduler_.wake(*thread);
    }
  }
  barrier.completed = std::move(complete);
  barrier.executed = std::make_shared<const VectorClock>(barrier.executing);
}

namespace calls {

void barrier_init(std::uint32_t address, std::uint32_t arrivals, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.memory.shared_bytes(address, 8, 8, "Barrier::init", site);
  if (arrivals == 0 || arrivals > max_arrivals) {
    engine.findings.fatal(FindingKind::bad_argument, "Barrier::init" + engine.words.at(site) + " with " +
                                                         std::to_string(arrivals) + " arrivals; legal are 1 to " +
                                                         std::to_string(max_arrivals));
  }
  Block& block = *thread.block;
  const std::uint32_t offset = address & 0xFFFFFFU;
  auto& slot = block.barriers[offset];
  if (slot) {
    engine.findings.report(FindingKind::barrier_misuse,
                           "Barrier::init" + engine.words.at(site) + " by " + engine.words.of(thread) + " of " +
                               engine.words.of(*slot) + ", which is already initialised",
                           {"before: initialised by " + engine.words.of(*engine.cluster.threads[slot->init.lane]) +
                            engine.words.at(slot->init.site)});
  }
  const Access self = engine.ordering.access(thread, AccessKind::write, site);
  block.shadow.set_barrier(offset, false);
  engine.memory.check_shared(block, offset, 8, {self, &thread.knowledge.seen, nullptr});
  block.shadow.set_barrier(offset, true);
  if (!slot) {
    slot = std::make_unique<Mbarrier>();
    slot->lane = engine.ordering.new_lane({LaneOwner::What::barrier, slot.get()});
    slot->block = &block;
    slot->offset = offset;
  }
  Mbarrier& barrier = *slot;
  barrier.expected = arrivals;
  barrier.pending = arrivals;
  barrier.bytes = 0;
  barrier.phase +=
      barrier.phase % 2;  // a barrier that is initialised again starts with parity 0; its lane's clock continues
  barrier.arriving.clear();
  barrier.init = self;
  barrier.published = false;
  barrier.first_phase = barrier.phase;
  Ordering::tick(thread);
}

void barrier_arrive(std::uint32_t address, std::uint32_t arrivals, std::uint32_t expected_bytes, Space space,
                    Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  const bool remote = space == Space::cluster && address >> 24 != thread.block->rank;
  if (remote) {
    engine.memory.require_started(thread, engine.memory.block_of(address), "an arrival", site);
  }
  Mbarrier& barrier = engine.barriers.at(address, "an arrival", site);
  engine.barriers.check_published(thread, barrier, remote, "an arrival", site);
  if (remote) {
    engine.memory.note_remote(*barrier.block, engine.ordering.access(thread, AccessKind::atomic, site));
  }
  if (expected_bytes != 0) {
    engine.barriers.expect_bytes(barrier, expected_bytes, site);
  }
  if (arrivals != 0) {
    Ordering::release(thread, barrier.arriving);
    engine.barriers.arrive(barrier, arrivals, thread, "", site);
  }
  engine.scheduler.progress();
}

namespace {

Mbarrier& waited_barrier(Engine& engine, Thread& thread, std::uint32_t address, std::uint32_t parity,
                         std::uint32_t site) {
  Mbarrier& barrier = engine.barriers.at(address, "a wait", site);
  engine.barriers.check_published(thread, barrier, false, "a wait", site);
  if (parity > 1) {
    engine.findings.fatal(FindingKind::bad_argument, "a wait" + engine.words.at(site) + " for parity " +
                                                         std::to_string(parity) + "; a parity is 0 or 1");
  }
  return barrier;
}

bool completed(const Mbarrier& barrier, std::uint32_t parity) { return barrier.phase % 2 != parity; }

}  // namespace

void barrier_wait(std::uint32_t address, std::uint32_t parity, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  Mbarrier& barrier = waited_barrier(engine, thread, address, parity, site);
  if (completed(barrier, parity)) {
    Ordering::learn(thread, barrier.completed);
    return;
  }
  const std::uint32_t phase = barrier.phase;
  barrier.waiters.push_back(&thread);
  engine.scheduler.block(thread, {Wait::What::barrier, site, parity, &barrier});
  if (barrier.phase > phase + 1 &&
      engine.findings.first_time(FindingKind::barrier_misuse, site, reinterpret_cast<std::uintptr_t>(&barrier))) {
    engine.findings.report(
        FindingKind::barrier_misuse,
        engine.words.of(thread) + " waited" + engine.words.at(site) + " for phase " + std::to_string(phase) + " of " +
            engine.words.of(barrier) + " and could not be sure to see it complete",
        {"the next phase completed too before the thread looked again: a waiting loop can miss that for ever"});
  }
}

void fence_barrier_init(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  static_cast<void>(engine.sites.number(where));
  for (auto& [offset, barrier] : thread.block->barriers) {
    if (barrier->init.lane == thread.lane() && !barrier->published) {
      barrier->published = true;
      barrier->published_cluster_phase = thread.cluster_arrivals;
    }
  }
}

void name_barrier(std::uint32_t address, const char* name, std::uint32_t index) {
  Engine& engine = Engine::current();
  Mbarrier& barrier = engine.barriers.at(address, "debug::name_barrier", 0);
  barrier.name = name;
  barrier.index = index;
}

}  // namespace calls
}  // namespace thresher::emulator
