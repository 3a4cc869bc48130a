#include "machine/emulator/engine/tensor_columns.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "machine/emulator/engine/tensor_uses.hpp"

namespace thresher::emulator {
namespace {

void wake_waiters(Cluster& cluster, Scheduler& scheduler) {
  for (Thread* waiter : std::exchange(cluster.column_waiters, {})) {
    scheduler.wake(*waiter);
  }
}

/// The block of another launch on a multiprocessor frees its columns.
class StrangerLeaves final : public AsyncWork {
 public:
  StrangerLeaves(Engine& engine, Multiprocessor& from) : engine_(engine), from_(from) {}

  void complete() override {
    std::erase_if(from_.held, [](const HeldColumns& held) { return held.block == nullptr; });
    wake_waiters(engine_.cluster, engine_.scheduler);
  }

 private:
  Engine& engine_;
  Multiprocessor& from_;
};

bool two_blocks_fit(const LaunchShape& shape) {
  return 2 * (shape.dynamic_shared_bytes + reserved_block_shared_bytes) <= shared_bytes_per_multiprocessor &&
         2 * shape.block <= threads_per_multiprocessor &&
         2 * shape.block * shape.registers_at_launch <= registers_per_multiprocessor;
}

/// Empty if that block would leave before any thread could notice it.
HeldColumns draw_stranger(Order completions, Random& random) {
  const HeldColumns all{nullptr, 0, tensor_columns};
  if (completions != Order::random) {
    return completions == Order::latest ? all : HeldColumns{};
  }
  switch (random.below(3)) {
    case 0: return {};
    case 1: return all;
    default: break;
  }
  const std::uint32_t columns = 32U << random.below(4);
  return {nullptr, random.below(tensor_columns / columns) * columns, columns};
}

/// Draws from a separate generator, so that the rest of a seed's schedule stays the same.
void place_cluster(Engine& engine, bool pair) {
  Cluster& cluster = engine.cluster;
  const Schedule& schedule = engine.options.schedule;
  Random random(schedule.seed ^ std::uint64_t{cluster.serial} << 32U);
  const bool shared = !pair && cluster.blocks.size() > 1 && two_blocks_fit(engine.shape) &&
                      (schedule.threads == Order::random ? random.below(2) == 0 : schedule.threads == Order::latest);
  const std::size_t blocks_each = shared ? 2 : 1;
  cluster.multiprocessors.resize((cluster.blocks.size() + blocks_each - 1) / blocks_each);
  for (const auto& block : cluster.blocks) {
    block->multiprocessor = &cluster.multiprocessors[block->rank / blocks_each];
  }
  for (Multiprocessor& multiprocessor : cluster.multiprocessors) {
    const HeldColumns stranger = draw_stranger(schedule.completions, random);
    if (stranger.columns != 0) {
      multiprocessor.held.push_back(stranger);
      engine.scheduler.submit(std::make_unique<StrangerLeaves>(engine, multiprocessor));
    }
  }
}

bool is_free(const Multiprocessor& multiprocessor, std::uint32_t first, std::uint32_t columns) {
  return std::all_of(multiprocessor.held.begin(), multiprocessor.held.end(), [&](const HeldColumns& held) {
    return held.first + held.columns <= first || first + columns <= held.first;
  });
}

bool may_allocate(const Block& block) {
  const Block* const allocating = block.multiprocessor->allocating;
  return allocating == nullptr || allocating == &block;
}

}  // namespace

std::optional<std::uint32_t> take_columns(Engine& engine, Block& block, std::uint32_t columns, bool pair) {
  Cluster& cluster = engine.cluster;
  if (cluster.multiprocessors.empty()) {
    place_cluster(engine, pair);
  }
  const std::array<Block*, 2> blocks = {&block, cluster.blocks[block.rank ^ (pair ? 1U : 0U)].get()};
  if (!may_allocate(block)) {
    return std::nullopt;
  }
  for (std::uint32_t first = 0; first + columns <= tensor_columns; first += columns) {
    if (!is_free(*blocks[0]->multiprocessor, first, columns) || !is_free(*blocks[1]->multiprocessor, first, columns)) {
      continue;
    }
    for (std::size_t i = 0; i < (pair ? 2 : 1); ++i) {
      blocks[i]->multiprocessor->held.push_back({blocks[i], first, columns});
      blocks[i]->multiprocessor->allocating = blocks[i];
    }
    return first;
  }
  return std::nullopt;
}

void wait_for_columns(Engine& engine, Thread& thread, std::uint32_t columns, std::uint32_t site) {
  engine.cluster.column_waiters.push_back(&thread);
  engine.scheduler.block(thread, {Wait::What::tensor_columns, site, columns, thread.block});
}

void give_back_columns(Engine& engine, const Block& block, std::uint32_t first) {
  std::erase_if(block.multiprocessor->held,
                [&](const HeldColumns& held) { return held.block == &block && held.first == first; });
  wake_waiters(engine.cluster, engine.scheduler);
}

void give_up_allocation(Engine& engine, const Block& block) {
  if (block.multiprocessor != nullptr && block.multiprocessor->allocating == &block) {
    block.multiprocessor->allocating = nullptr;
    wake_waiters(engine.cluster, engine.scheduler);
  }
}

}  // namespace thresher::emulator
