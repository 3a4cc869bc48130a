// How a cluster's blocks and threads start and end.
#include <algorithm>
#include <exception>
#include <string_view>

#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {

bool Engine::launch_is_legal() {
  const auto refuse = [this](const std::string& sentence) {
    report(FindingKind::bad_launch, sentence);
    return false;
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  if (shape.grid.count() == 0) {
    return refuse("the grid has no blocks");
  }
  if (shape.block == 0 || shape.block > max_block_threads) {
    return refuse("a block of " + number(shape.block) + " threads; the hardware takes 1 to " +
                  number(max_block_threads));
  }
  if (shape.dynamic_shared_bytes > max_block_shared_bytes) {
    return refuse(number(shape.dynamic_shared_bytes) + " bytes of shared memory; a block has at most " +
                  number(max_block_shared_bytes));
  }
  const std::uint64_t cluster = shape.cluster.count();
  if (cluster == 0 || cluster > max_cluster_blocks) {
    return refuse("a cluster of " + number(cluster) + " blocks; the hardware takes 1 to " + number(max_cluster_blocks));
  }
  if (shape.grid.x % shape.cluster.x != 0 || shape.grid.y % shape.cluster.y != 0 ||
      shape.grid.z % shape.cluster.z != 0) {
    return refuse("the grid is not a multiple of the cluster in every dimension");
  }
  const std::uint64_t warps = (shape.block + 31) / 32;
  const std::uint64_t registers = warps * 32 * ((shape.registers_at_launch + 7) / 8 * 8);
  if (registers > registers_per_multiprocessor) {
    report(FindingKind::register_budget, number(shape.block) + " threads × " + number(shape.registers_at_launch) +
                                             " registers = " + number(registers) + ", more than the " +
                                             number(registers_per_multiprocessor) + " of a multiprocessor");
    return false;
  }
  return true;
}

namespace {

void build_block(Block& block, const LaunchShape& shape, std::vector<std::unique_ptr<Thread>>& threads) {
  block.warps.assign((shape.block + 31) / 32, {});
  block.groups = std::vector<Warpgroup>((shape.block + 127) / 128);
  block.first_thread = static_cast<std::uint32_t>(threads.size());
  block.running = shape.block;
  for (std::uint32_t g = 0; g < block.groups.size(); ++g) {
    block.groups[g].block = &block;
    block.groups[g].index = g;
  }
  for (std::uint32_t t = 0; t < shape.block; ++t) {
    auto thread = std::make_unique<Thread>();
    thread->index = static_cast<std::uint32_t>(threads.size());
    thread->in_block = t;
    thread->block = &block;
    thread->warp = &block.warps[t / 32];
    thread->group = &block.groups[t / 128];
    thread->registers = shape.registers_at_launch;
    thread->warp->lanes[t % 32] = thread.get();
    thread->warp->present |= 1U << (t % 32);
    thread->warp->first_thread = t / 32 * 32;
    threads.push_back(std::move(thread));
  }
}

}  // namespace

void Engine::start_cluster(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  const auto cluster_blocks = static_cast<std::uint32_t>(shape.cluster.count());
  ++cluster_serial;
  ++statistics.clusters;
  threads.clear();
  blocks.resize(cluster_blocks);
  for (std::uint32_t rank = 0; rank < cluster_blocks; ++rank) {
    if (!blocks[rank]) {
      blocks[rank] = std::make_unique<Block>();
    }
    Block& block = *blocks[rank];
    block.rank = rank;
    block.at = {x + rank % shape.cluster.x, y + rank / shape.cluster.x % shape.cluster.y,
                z + rank / (shape.cluster.x * shape.cluster.y)};
    // What a real block finds in its shared memory is anything; a pattern that no computation expects.
    block.bytes.assign(shape.dynamic_shared_bytes, 0xCD);
    block.shadow.reset(shape.dynamic_shared_bytes, false);
    block.barriers.clear();
    block.named = {};
    block.names.clear();
    block.free_registers = 0;
    block.register_waiters.clear();
    block.remote_uses.clear();
    block.last_remote = {};
    build_block(block, shape, threads);
  }
  lanes_.clear();
  acquired_.clear();
  for (auto& thread : threads) {
    new_lane({LaneOwner::What::thread, thread.get()});
    thread->knowledge.seen.raise(thread->lane(), 1);
  }
  earlier_grid_lane = new_lane({LaneOwner::What::earlier_grid, nullptr});
  cluster_arriving.clear();
  cluster_arrived = 0;
  cluster_phase = 0;
  cluster_executing.clear();
  cluster_executed.reset();
  running = static_cast<std::uint32_t>(threads.size());
  queue_.reset(options.schedule, random, running, 32);
  async.reset(options.schedule.completions, random);
  progress_at_poll_ = progress_;
  idle_poll_rounds_ = 0;
  for (auto& thread : threads) {
    Thread* const started = thread.get();
    started->state = Thread::State::runnable;
    started->fiber.start(stacks_, [this, started] {
      try {
        if (!stopping_) {
          kernel_();
        }
      } catch (const StopThread&) {
        return;
      } catch (const std::exception& error) {
        report(FindingKind::kernel_exception, words(*started) + " threw: " + error.what());
        stopping_ = true;
      } catch (...) {
        report(FindingKind::kernel_exception, words(*started) + " threw something that is no std::exception");
        stopping_ = true;
      }
    });
    queue_.insert(started->index);
  }
}

void Engine::end_cluster() {
  if (stopping_) {
    return;
  }
  for (auto& block : blocks) {
    for (auto& [offset, barrier] : block->barriers) {
      if (barrier->live && barrier->bytes != 0) {
        report(FindingKind::byte_count, "the kernel ended while " + words(*barrier) + " still awaits bytes");
      }
    }
  }
}

/// "a multicast into its shared memory was in flight: …": the last copy announced on a barrier.
std::string Engine::words_of_flight(const Mbarrier& barrier) const {
  const bool shared = std::string_view(barrier.in_flight_call).find("multicast") != std::string_view::npos;
  return std::string(shared ? "a multicast" : "a copy") +
         " into its shared memory was in flight: " + barrier.in_flight_call + " by " +
         words(*barrier.in_flight_thread) + at(barrier.in_flight_site);
}

/// What must hold when the last thread of a block ends: nothing that it started, and nothing that others do to its
/// shared memory, is still under way.
void Engine::check_block_end(Block& block) {
  VectorClock known;
  VectorClock over;  // known, or executed before a cluster barrier: no longer under way
  for (std::uint32_t t = 0; t < shape.block; ++t) {
    const Thread& thread = *threads[block.first_thread + t];
    known.join(thread.knowledge.seen);
    if (thread.executed != nullptr) {
      over.join(*thread.executed);
    }
  }
  over.join(known);
  const auto unfinished = [&](const std::string& what) {
    report(FindingKind::unfinished_work, words(block) + " ended while " + what);
  };
  for (const auto& group : block.groups) {
    if (group.lane != 0 && (known.at(group.lane) < group.groups.closed() ||
                            group.groups.issued > group.groups.needed(group.groups.closed()))) {
      unfinished(words(group) + " had multiplies that no wgmma::wait retired");
    }
  }
  for (std::uint32_t t = 0; t < shape.block; ++t) {
    const Thread& thread = *threads[block.first_thread + t];
    if (thread.stores && (thread.stores->groups.issued > thread.stores->groups.needed(thread.stores->groups.closed()) ||
                          thread.stores->waited < thread.stores->groups.closed())) {
      unfinished("TMA stores of " + words(thread) + " may still read its shared memory: no tma::wait_read<0>");
    }
    if (thread.copies && (thread.copies->groups.issued > thread.copies->groups.done)) {
      unfinished("asynchronous copies of " + words(thread) + " still write its shared memory");
    }
  }
  for (const auto& [offset, barrier] : block.barriers) {
    if (barrier->live && barrier->in_flight_bytes != 0) {
      unfinished(words_of_flight(*barrier) + ", on " + words(*barrier));
    } else if (barrier->live && barrier->bytes > 0 && barrier->pending == barrier->expected) {
      unfinished("bytes announced on " + words(*barrier) + " had not arrived");
    } else if (barrier->live && known.at(barrier->lane) < barrier->phase && barrier->in_flight_site != 0) {
      unfinished("nobody had waited for the copies of " + words(*barrier) + "; " + at(barrier->in_flight_site));
    }
  }
  if (block.last_remote.kind != AccessKind::none) {
    for (Lane lane = 0; lane < lanes_.size(); ++lane) {
      if (block.remote_uses.at(lane) > over.at(lane)) {
        Access use = block.last_remote;
        use.lane = lane;
        use.clock = block.remote_uses.at(lane);
        report(FindingKind::left_cluster_early,
               words(block) + " ended while another block may still use its shared memory: " + words(use),
               {"order it behind: a cluster barrier, or a wait for the barrier that the access completes on"});
        break;
      }
    }
  }
}

void Engine::note_remote(Block& target, const Access& use) {
  target.remote_uses.raise(use.lane, use.clock);
  target.last_remote = use;
}

void Engine::require_started(Thread& thread, Block& target, const char* call, std::uint32_t site_number) {
  if (target.rank == thread.block->rank) {
    return;
  }
  bool knows = thread.cluster_waits > 0;
  for (std::uint32_t t = 0; !knows && t < shape.block; ++t) {
    knows = thread.knowledge.seen.at(static_cast<Lane>(target.first_thread + t)) != 0;
  }
  if (!knows && first_time(FindingKind::left_cluster_early, site_number, 1)) {
    report(FindingKind::left_cluster_early, std::string(call) + " by " + words(thread) + at(site_number) +
                                                " reaches into " + words(target) +
                                                ", which may not have started: no cluster barrier came before");
  }
  if (target.running == 0 && first_time(FindingKind::left_cluster_early, site_number, 2)) {
    report(FindingKind::left_cluster_early, std::string(call) + " by " + words(thread) + at(site_number) +
                                                " reaches into " + words(target) + ", which has ended");
  }
}

}  // namespace thresher::emulator
