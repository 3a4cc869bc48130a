// Synchronisation of threads: block and named barriers, the cluster's barrier, warps; and the register pool.
#include <algorithm>
#include <bit>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {

namespace {

void wake_register_waiters(Engine& engine, Block& block) {
  std::vector<Thread*> waiters;
  waiters.swap(block.register_waiters);
  for (Thread* waiter : waiters) {
    engine.scheduler.wake(*waiter);
  }
}

}  // namespace

namespace calls {

void block_sync(std::uint32_t id, std::uint32_t threads, bool waits, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  const auto call = [id] { return id == 0 ? "block::sync" : "named barrier " + std::to_string(id); };
  const std::uint32_t expected = id == 0 ? engine.shape.block : threads;
  if (id > 15 || (id != 0 && (threads == 0 || threads % 32 != 0 || threads > (engine.shape.block + 31) / 32 * 32))) {
    engine.findings.fatal(FindingKind::bad_argument,
                          call() + engine.words.at(site) + " with " + std::to_string(threads) +
                              " threads: ids are 1 to 15, threads a multiple of 32 and not more than the block has");
  }
  BlockBarrier& barrier = thread.block->named[id];
  if (barrier.arrived.empty()) {
    barrier.threads = expected;
    barrier.site = site;
  } else if (barrier.threads != expected) {
    engine.findings.fatal(
        FindingKind::arrival_count,
        call() + engine.words.at(site) + " by " + engine.words.of(thread) + " counts " + std::to_string(expected) +
            " threads, but the round that is under way counts " + std::to_string(barrier.threads),
        {"the round was begun by " + engine.words.of(*barrier.arrived.front()) + engine.words.at(barrier.site)});
  }
  if (barrier.is_there[thread.in_block]) {
    engine.findings.fatal(FindingKind::arrival_count,
                          engine.words.of(thread) + " comes to " + call() + engine.words.at(site) +
                              " twice in one round: " + std::to_string(barrier.arrived.size()) + " of " +
                              std::to_string(barrier.threads) + " had arrived");
  }
  barrier.arrived.push_back(&thread);
  barrier.is_there.set(thread.in_block);
  Ordering::release(thread, barrier.arriving);
  if (barrier.arrived.size() < barrier.threads) {
    if (waits) {
      barrier.waiters.push_back(&thread);
      engine.scheduler.block(thread, {Wait::What::block_barrier, site, id, &barrier});
    }
    return;
  }
  for (Thread* waiter : barrier.waiters) {
    Ordering::learn(*waiter, barrier.arriving);
    engine.scheduler.wake(*waiter);
  }
  if (waits) {
    Ordering::learn(thread, barrier.arriving);
  }
  barrier.waiters.clear();
  barrier.arrived.clear();
  barrier.is_there.reset();
  barrier.arriving.clear();
  engine.scheduler.progress();
}

void cluster_arrive(bool releases, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  if (thread.cluster_arrivals != thread.cluster_waits) {
    engine.findings.fatal(FindingKind::barrier_misuse, "cluster::arrive" + engine.words.at(site) + " by " +
                                                           engine.words.of(thread) + " twice without a cluster::wait");
  }
  ++thread.cluster_arrivals;
  ++engine.cluster.barrier.arrived;
  engine.cluster.barrier.executing.raise(thread.lane(), thread.clock());
  if (releases) {
    Ordering::release(thread, engine.cluster.barrier.arriving);
  }
  engine.barriers.finish_cluster_phase_if_complete();
  engine.scheduler.progress();
}

void cluster_wait(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  if (thread.cluster_arrivals == thread.cluster_waits) {
    engine.findings.fatal(FindingKind::barrier_misuse, "cluster::wait" + engine.words.at(site) + " by " +
                                                           engine.words.of(thread) + " without a cluster::arrive");
  }
  if (engine.cluster.barrier.phase < thread.cluster_arrivals) {
    engine.scheduler.block(thread, {Wait::What::cluster_barrier, site, 0, nullptr});
  } else {
    Ordering::learn(thread, engine.cluster.barrier.completed);
  }
  thread.cluster_waits = thread.cluster_arrivals;
  thread.executed = engine.cluster.barrier.executed;
}

std::uint32_t cluster_map(std::uint32_t address, std::uint32_t rank) {
  Engine& engine = Engine::current();
  if (rank >= engine.cluster.blocks.size()) {
    engine.findings.fatal(FindingKind::bad_argument,
                          "cluster::map to block " + std::to_string(rank) + " of a cluster of " +
                              std::to_string(engine.cluster.blocks.size()) + " by " + engine.words.of(Engine::self()));
  }
  return (address & 0xFFFFFFU) | rank << 24;
}

const std::uint64_t* warp_exchange(const char* call, std::uint64_t word, std::uint32_t mask, bool orders, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  Warp& warp = *thread.warp;
  const std::uint32_t lane = thread.in_block % 32;
  mask &= warp.present;
  if ((mask >> lane & 1U) == 0) {
    engine.findings.fatal(FindingKind::divergent, std::string(call) + engine.words.at(site) + " by " +
                                                      engine.words.of(thread) + ", which its own mask leaves out");
  }
  WarpMeeting& meeting = mask == warp.present ? warp.whole : warp.meetings[mask];
  if (meeting.arrived == 0) {
    meeting.call = call;
    meeting.site = site;
  } else if (meeting.call != call || meeting.site != site) {
    engine.findings.fatal(FindingKind::divergent, engine.words.of(thread) + " is in " + call + engine.words.at(site) +
                                                      " while others of its warp are in " + meeting.call +
                                                      engine.words.at(meeting.site));
  }
  meeting.given[lane] = word;
  meeting.arrived |= 1U << lane;
  if (orders) {
    Ordering::release(thread, meeting.arriving);
  }
  if (meeting.arrived != mask) {
    engine.scheduler.block(thread, {Wait::What::warp, site, 0, &meeting});
    return meeting.taken.data();
  }
  meeting.taken = meeting.given;
  meeting.given = {};
  meeting.arrived = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto other = static_cast<std::uint32_t>(std::countr_zero(left));
    if (orders) {
      Ordering::learn(*warp.lanes[other], meeting.arriving);
    }
    if (other != lane) {
      engine.scheduler.wake(*warp.lanes[other]);
    }
  }
  meeting.arriving.clear();
  return meeting.taken.data();
}

void check_matrix_row(std::uint32_t address, Site where) {
  Engine& engine = Engine::current();
  engine.memory.shared_bytes(address, 16, 16, "a row of a matrix access", engine.sites.number(where));
}

void registers_change(std::uint32_t count, bool increase, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  const char* call = increase ? "registers::increase" : "registers::decrease";
  const std::uint64_t* asked = warp_exchange(call, count, 0xFFFFFFFFU, false, where);
  if (asked[thread.in_block % 32] != asked[thread.warp->lanes[0]->in_block % 32]) {
    engine.findings.fatal(FindingKind::divergent,
                          std::string(call) + engine.words.at(site) + " with different counts in one warp");
  }
  if (thread.warp->lanes[0] == &thread) {
    thread.warp->hand_overs.push_back({count, increase, site});
  }
  if (engine.shape.registers_at_launch == 0) {
    return;
  }
  if (increase ? count < thread.registers : count > thread.registers) {
    engine.findings.fatal(FindingKind::register_budget, std::string(call) + engine.words.at(site) + " by " +
                                                            engine.words.of(thread) + " to " + std::to_string(count) +
                                                            ", but it has " + std::to_string(thread.registers));
  }
  Block& block = *thread.block;
  const std::int64_t change = static_cast<std::int64_t>(count) - thread.registers;
  while (block.free_registers < change) {
    block.register_waiters.push_back(&thread);
    engine.scheduler.block(thread, {Wait::What::registers, site, count, &block});
  }
  block.free_registers -= change;
  thread.registers = count;
  if (change < 0) {
    wake_register_waiters(engine, block);
  }
}

}  // namespace calls
}  // namespace thresher::emulator
