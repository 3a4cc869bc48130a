// mbarriers: arrivals, bytes, phases.
#include <algorithm>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {
namespace {

constexpr std::uint32_t max_arrivals = (1U << 20) - 1;
constexpr std::int64_t max_bytes = (1 << 20) - 1;

void complete_phase_if_due(Engine& engine, Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) {
    return;
  }
  if (barrier.in_flight_bytes != 0) {
    engine.report(
        FindingKind::byte_count,
        "a phase of " + engine.words(barrier) + " completes before all its copies have: too few bytes were announced",
        {"a copy under way was issued" + engine.at(barrier.in_flight_site)});
  }
  barrier.pending = barrier.expected;
  ++barrier.phase;
  barrier.arriving.seen.raise(barrier.lane, barrier.phase);
  barrier.completed.join(barrier.arriving);
  barrier.arriving.clear();
  engine.progress();
  // Whoever waits for this phase learns of it now; what later phases add is not theirs yet.
  std::vector<Thread*> waiters;
  waiters.swap(barrier.waiters);
  for (Thread* waiter : waiters) {
    if ((barrier.phase - 1) % 2 == waiter->wait.number) {
      Engine::learn(*waiter, barrier.completed);
      engine.wake(*waiter);
    } else {
      barrier.waiters.push_back(waiter);
    }
  }
}

}  // namespace

Mbarrier& Engine::barrier_at(std::uint32_t address, const char* call, std::uint32_t site_number) {
  shared_bytes(address, 8, 8, call, site_number);
  Block& block = block_of(address);
  const auto found = block.barriers.find(address & 0xFFFFFFU);
  if (found == block.barriers.end() || !found->second->live) {
    const Thread* thread = running_thread();
    fatal(FindingKind::barrier_misuse,
          std::string(call) + at(site_number) + (thread != nullptr ? " by " + words(*thread) : "") + ": " +
              shared_words(block, address & 0xFFFFFFU, 8) + " is no barrier: Barrier::init did not run before");
  }
  return *found->second;
}

/// A thread other than the initialising one must know of the init, and the copy engine and other blocks need its fence
/// too.
void Engine::check_published(Thread& thread, Mbarrier& barrier, bool needs_fence, const char* call,
                             std::uint32_t site_number) {
  const bool own = barrier.init.lane == thread.lane();
  const bool knows = own || thread.knowledge.seen.at(barrier.init.lane) >= barrier.init.clock ||
                     (barrier.published && thread.cluster_waits > barrier.published_cluster_phase);
  if (!knows && first_time(FindingKind::race, site_number, barrier.init.site)) {
    report(FindingKind::race,
           std::string(call) + at(site_number) + " by " + words(thread) + " uses " + words(barrier) +
               " without knowing that it is initialised",
           {"before: initialised by " + words(*threads[barrier.init.lane]) + at(barrier.init.site),
            "a block or cluster barrier must come between"});
  } else if (needs_fence && !barrier.published &&
             first_time(FindingKind::missing_proxy_fence, site_number, barrier.init.site)) {
    report(FindingKind::missing_proxy_fence,
           std::string(call) + at(site_number) + " by " + words(thread) + " uses " + words(barrier) +
               " from the copy engine or another block",
           {"before: initialised by " + words(*threads[barrier.init.lane]) + at(barrier.init.site),
            "fence::barrier_init did not follow the init"});
  }
}

void Engine::arrive(Mbarrier& barrier, std::uint32_t count, const Thread& thread, const char* what,
                    std::uint32_t site_number) {
  if (count > barrier.pending) {
    fatal(FindingKind::arrival_count, what + words(thread) + at(site_number) + " arrives " + std::to_string(count) +
                                          " times on " + words(barrier) + ", more than the phase still awaits");
    return;
  }
  barrier.pending -= count;
  complete_phase_if_due(*this, barrier);
}

void Engine::complete_bytes(Mbarrier& barrier, std::uint64_t bytes) {
  barrier.bytes -= static_cast<std::int64_t>(bytes);
  barrier.in_flight_bytes -= std::min(bytes, barrier.in_flight_bytes);
  complete_phase_if_due(*this, barrier);
}

void Engine::expect_bytes(Mbarrier& barrier, std::uint32_t bytes, std::uint32_t site_number) {
  barrier.bytes += bytes;
  if (barrier.bytes > max_bytes) {
    fatal(FindingKind::byte_count,
          "a barrier counts at most " + std::to_string(max_bytes) + " bytes; " + words(barrier) + at(site_number));
  }
}

namespace calls {

void barrier_init(std::uint32_t address, std::uint32_t arrivals, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.site(where);
  engine.shared_bytes(address, 8, 8, "Barrier::init", site);
  if (arrivals == 0 || arrivals > max_arrivals) {
    engine.fatal(FindingKind::bad_argument, "Barrier::init" + engine.at(site) + " with " + std::to_string(arrivals) +
                                                " arrivals; legal are 1 to " + std::to_string(max_arrivals));
  }
  Block& block = *thread.block;
  const std::uint32_t offset = address & 0xFFFFFFU;
  auto& slot = block.barriers[offset];
  if (slot && slot->live) {
    engine.report(
        FindingKind::barrier_misuse,
        "Barrier::init" + engine.at(site) + " by " + engine.words(thread) + " of " + engine.words(*slot) +
            ", which is already initialised",
        {"before: initialised by " + engine.words(*engine.threads[slot->init.lane]) + engine.at(slot->init.site)});
  }
  const Access self = engine.access(thread, AccessKind::write, site);
  block.shadow.set_barrier(offset, false);
  engine.check_shared(block, offset, 8, {self, &thread.knowledge.seen, nullptr});
  block.shadow.set_barrier(offset, true);
  if (!slot) {
    slot = std::make_unique<Mbarrier>();
    slot->lane = engine.new_lane({LaneOwner::What::barrier, slot.get()});
    slot->block = &block;
    slot->offset = offset;
  }
  Mbarrier& barrier = *slot;
  barrier.live = true;
  barrier.expected = arrivals;
  barrier.pending = arrivals;
  barrier.bytes = 0;
  barrier.phase += barrier.phase % 2;  // a barrier initialised again starts with parity 0; its lane's clock goes on
  barrier.arriving.clear();
  barrier.init = self;
  barrier.published = false;
  barrier.first_phase = barrier.phase;
  Engine::tick(thread);
}

void barrier_invalidate(std::uint32_t address, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.site(where);
  Mbarrier& barrier = engine.barrier_at(address, "Barrier::invalidate", site);
  if (!barrier.waiters.empty() || barrier.bytes != 0 || barrier.in_flight_bytes != 0) {
    engine.report(FindingKind::barrier_misuse, "Barrier::invalidate" + engine.at(site) + " by " + engine.words(thread) +
                                                   " of " + engine.words(barrier) + ", which is still in use");
  }
  barrier.live = false;
  thread.block->shadow.set_barrier(barrier.offset, false);
}

void barrier_arrive(std::uint32_t address, std::uint32_t arrivals, std::uint32_t expected_bytes, Space space,
                    Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.site(where);
  engine.pause(thread);
  const bool remote = space == Space::cluster && address >> 24 != thread.block->rank;
  if (remote) {
    engine.require_started(thread, engine.block_of(address), "an arrival", site);
  }
  Mbarrier& barrier = engine.barrier_at(address, "an arrival", site);
  engine.check_published(thread, barrier, remote, "an arrival", site);
  if (remote) {
    engine.note_remote(*barrier.block, engine.access(thread, AccessKind::atomic, site));
  }
  if (expected_bytes != 0) {
    engine.expect_bytes(barrier, expected_bytes, site);
  }
  if (arrivals != 0) {
    Engine::release(thread, barrier.arriving);
    engine.arrive(barrier, arrivals, thread, "", site);
  }
  engine.progress();
}

namespace {

Mbarrier& waited_barrier(Engine& engine, Thread& thread, std::uint32_t address, std::uint32_t parity,
                         std::uint32_t site) {
  Mbarrier& barrier = engine.barrier_at(address, "a wait", site);
  engine.check_published(thread, barrier, false, "a wait", site);
  if (parity > 1) {
    engine.fatal(FindingKind::bad_argument,
                 "a wait" + engine.at(site) + " for parity " + std::to_string(parity) + "; a parity is 0 or 1");
  }
  return barrier;
}

bool completed(const Mbarrier& barrier, std::uint32_t parity) { return barrier.phase % 2 != parity; }

}  // namespace

void barrier_wait(std::uint32_t address, std::uint32_t parity, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.site(where);
  engine.pause(thread);
  Mbarrier& barrier = waited_barrier(engine, thread, address, parity, site);
  if (completed(barrier, parity)) {
    Engine::learn(thread, barrier.completed);
    return;
  }
  const std::uint32_t phase = barrier.phase;
  barrier.waiters.push_back(&thread);
  engine.block(thread, {Wait::What::barrier, site, parity, &barrier});
  if (barrier.phase > phase + 1 &&
      engine.first_time(FindingKind::barrier_misuse, site, reinterpret_cast<std::uintptr_t>(&barrier))) {
    engine.report(
        FindingKind::barrier_misuse,
        engine.words(thread) + " waited" + engine.at(site) + " for phase " + std::to_string(phase) + " of " +
            engine.words(barrier) + " and could not be sure to see it complete",
        {"the next phase completed too before the thread looked again: a waiting loop can miss that for ever"});
  }
}

bool barrier_try_wait(std::uint32_t address, std::uint32_t parity, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.site(where);
  engine.pause(thread);
  Mbarrier& barrier = waited_barrier(engine, thread, address, parity, site);
  if (!completed(barrier, parity)) {
    // The attempt may or may not last until the phase completes.
    barrier.waiters.push_back(&thread);
    engine.poll(thread, {Wait::What::barrier, site, parity, &barrier});
    std::erase(barrier.waiters, &thread);
    if (!completed(barrier, parity)) {
      return false;
    }
  }
  Engine::learn(thread, barrier.completed);
  return true;
}

void fence_barrier_init(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  static_cast<void>(engine.site(where));
  for (auto& [offset, barrier] : thread.block->barriers) {
    if (barrier->init.lane == thread.lane() && !barrier->published) {
      barrier->published = true;
      barrier->published_cluster_phase = thread.cluster_arrivals;
    }
  }
}

void name_barrier(std::uint32_t address, const char* name, std::uint32_t index) {
  Engine& engine = Engine::current();
  Mbarrier& barrier = engine.barrier_at(address, "debug::name_barrier", 0);
  barrier.name = name;
  barrier.index = index;
}

}  // namespace calls
}  // namespace thresher::emulator
