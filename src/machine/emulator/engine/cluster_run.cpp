// The start and end of a cluster's blocks and threads.
#include <exception>

#include "machine/emulator/engine/block_end.hpp"
#include "machine/emulator/engine/deadlock.hpp"
#include "machine/emulator/engine/engine.hpp"
#include "machine/emulator/engine/tensor_columns.hpp"

namespace thresher::emulator {
namespace {

void build_block(Block& block, const LaunchShape& shape, std::vector<std::unique_ptr<Thread>>& threads) {
  block.warps.assign((shape.block + 31) / 32, {});
  block.groups = std::vector<Warpgroup>((shape.block + 127) / 128);
  block.first_thread = static_cast<std::uint32_t>(threads.size());
  block.threads = shape.block;
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

/// Shared memory is uninitialized at the start of a real block; this is a pattern that no computation expects.
constexpr std::uint8_t fresh_shared_byte = 0xCD;

void clear_block(Block& block, const LaunchShape& shape) {
  block.bytes.assign(shape.dynamic_shared_bytes, fresh_shared_byte);
  block.shadow.reset(shape.dynamic_shared_bytes, false);
  block.barriers.clear();
  block.named = {};
  block.names.clear();
  block.free_registers = 0;
  block.register_waiters.clear();
  block.remote_uses.clear();
  block.last_remote = {};
  block.tensor_memory.reset();
  block.multiprocessor = nullptr;
}

}  // namespace

void Engine::build_cluster(Extent first) {
  ++cluster.serial;
  ++statistics.clusters;
  cluster.threads.clear();
  cluster.blocks.resize(static_cast<std::size_t>(shape.cluster.count()));
  for (std::uint32_t rank = 0; rank < cluster.blocks.size(); ++rank) {
    if (!cluster.blocks[rank]) {
      cluster.blocks[rank] = std::make_unique<Block>();
    }
    Block& block = *cluster.blocks[rank];
    block.rank = rank;
    block.at = {first.x + rank % shape.cluster.x, first.y + rank / shape.cluster.x % shape.cluster.y,
                first.z + rank / (shape.cluster.x * shape.cluster.y)};
    clear_block(block, shape);
    build_block(block, shape, cluster.threads);
  }
  cluster.running = static_cast<std::uint32_t>(cluster.threads.size());
  cluster.tensor_group = 0;
  cluster.multiprocessors.clear();
  cluster.column_waiters.clear();
  ClusterBarrier& barrier = cluster.barrier;
  barrier.arriving.clear();
  barrier.arrived = 0;
  barrier.phase = 0;
  barrier.executing.clear();
  barrier.executed.reset();
}

void Engine::run_cluster(Extent first) {
  build_cluster(first);
  ordering.start_cluster();
  scheduler.start_cluster();
  scheduler.run_cluster();
  if (!findings.stopping()) {
    check_cluster_end(cluster, words, findings);
  }
}

void Engine::run_thread(Thread& thread) {
  try {
    if (!findings.stopping()) {
      kernel_();
    }
  } catch (const StopThread&) {
    return;
  } catch (const std::exception& error) {
    findings.report(FindingKind::kernel_exception, words.of(thread) + " threw: " + error.what());
    findings.stop();
  } catch (...) {
    findings.report(FindingKind::kernel_exception, words.of(thread) + " threw something that is no std::exception");
    findings.stop();
  }
}

void Engine::thread_ended(Thread& thread) {
  --cluster.running;
  barriers.finish_cluster_phase_if_complete();
  if (--thread.block->running == 0 && !findings.stopping()) {
    give_up_allocation(*this, *thread.block);
    check_block_end(shape, cluster, *thread.block, ordering, words, findings);
  }
}

void Engine::stuck() { report_deadlock(cluster, words, findings); }

}  // namespace thresher::emulator
