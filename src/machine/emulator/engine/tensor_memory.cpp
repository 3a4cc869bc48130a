// Tensor memory for threads: allocate, free, load, pass on.
#include <bit>
#include <cstring>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/tensor_calls.hpp"
#include "machine/emulator/engine/tensor_columns.hpp"
#include "machine/emulator/engine/tensor_uses.hpp"

namespace thresher::emulator::calls {
namespace {

constexpr std::uint32_t everyone = 0xFFFFFFFFU;

/// All threads of the warp synchronise with the same words; true for the one that acts for all.
bool meet(Engine& engine, Thread& thread, const char* call, std::uint64_t word, std::uint32_t site, Site where) {
  const std::uint64_t* given = warp_exchange(call, word, everyone, false, where);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (thread.warp->lanes[lane] != nullptr && given[lane] != word) {
      engine.findings.fatal(FindingKind::divergent, std::string(call) + engine.words.at(site) + " by " +
                                                        engine.words.of(thread) +
                                                        ": threads of its warp give other arguments");
    }
  }
  ++thread.tensor_uses;
  if (thread.warp->tensor_uses >= thread.tensor_uses) {
    return false;
  }
  thread.warp->tensor_uses = thread.tensor_uses;
  return true;
}

/// The common knowledge of all threads of a warp.
struct WarpKnowledge {
  explicit WarpKnowledge(const Warp& warp) {
    bool first = true;
    for (const Thread* thread : warp.lanes) {
      if (thread == nullptr) {
        continue;
      }
      if (first) {
        seen = thread->knowledge.seen;
        tensor_seen = thread->tensor_seen;
      } else {
        seen.meet(thread->knowledge.seen);
        tensor_seen.meet(thread->tensor_seen);
      }
      first = false;
    }
  }
  VectorClock seen;
  VectorClock tensor_seen;
};

TensorUse use_of(Engine& engine, Thread& thread, TensorUse::What what, std::uint32_t site) {
  TensorUse use;
  use.what = what;
  use.agents = static_cast<std::uint8_t>(std::popcount(thread.warp->present));
  use.lane = tensor_lane(engine, *thread.warp);
  use.clock = thread.tensor_uses;
  use.site = site;
  use.thread = &thread;
  use.thread_clock = thread.clock();
  return use;
}

std::string sentence(const Engine& engine, const Thread& thread, const char* call, std::uint32_t site) {
  return std::string(call) + engine.words.at(site) + " by " + engine.words.of(thread);
}

TensorMemory& memory_of(Block& block) {
  if (!block.tensor_memory) {
    block.tensor_memory = std::make_unique<TensorMemory>();
    block.tensor_memory->words.assign(std::size_t{tensor_lanes} * tensor_columns, 0xFFFFFFFFU);
    block.tensor_memory->cells.resize(std::size_t{tensor_quarters} * tensor_columns);
  }
  return *block.tensor_memory;
}

void check_may_allocate(Engine& engine, const Thread& thread, const TensorMemory& memory, std::uint32_t columns,
                        std::uint32_t site) {
  constexpr const char* call = "tensor_memory::allocate";
  if (memory.gave_up) {
    engine.findings.fatal(FindingKind::tensor_allocation,
                          sentence(engine, thread, call, site) + " comes after give_up_allocation");
  }
  if (!memory.history.empty() && columns > memory.history.back().columns) {
    engine.findings.fatal(FindingKind::tensor_allocation,
                          sentence(engine, thread, call, site) + " of " + std::to_string(columns) +
                              " columns is larger than the one before, of " +
                              std::to_string(memory.history.back().columns) + ": sizes may not grow");
  }
}

/// The allocation of the other block of a pair that corresponds to this block's next one; null without any. Throws
/// unless the two allocate alike.
const TensorAllocation* taken_by_peer(Engine& engine, const Thread& thread, std::uint32_t at, std::uint32_t columns,
                                      std::uint32_t site) {
  const Block& peer = *engine.cluster.blocks[thread.block->rank ^ 1U];
  const std::size_t index = thread.block->tensor_memory->history.size();
  if (!peer.tensor_memory || peer.tensor_memory->history.size() <= index) {
    return nullptr;
  }
  const TensorAllocation& other = peer.tensor_memory->history[index];
  if (other.columns != columns || other.at != at) {
    engine.findings.fatal(FindingKind::tensor_allocation,
                          sentence(engine, thread, "tensor_memory::allocate", site) +
                              " differs from what the other block of the pair allocates" + engine.words.at(other.site) +
                              ": as many columns and the same place in shared memory are asked for");
  }
  return &other;
}

/// Waits until there are enough columns. The first block of a pair to arrive allocates them for both.
std::uint32_t first_column(Engine& engine, Thread& thread, std::uint32_t at, std::uint32_t columns, bool pair,
                           std::uint32_t site) {
  if (pair) {
    const Block& peer = *engine.cluster.blocks[thread.block->rank ^ 1U];
    engine.memory.require_started(thread, peer, "tensor_memory::allocate", site);
  }
  for (;;) {
    const TensorAllocation* const of_peer = pair ? taken_by_peer(engine, thread, at, columns, site) : nullptr;
    if (of_peer != nullptr) {
      return of_peer->first;
    }
    if (const auto first = take_columns(engine, *thread.block, columns, pair)) {
      return *first;
    }
    wait_for_columns(engine, thread, columns, site);
  }
}

void allocate_columns(Engine& engine, Thread& thread, std::uint32_t at, std::uint32_t columns, bool pair,
                      std::uint32_t site, Site where) {
  TensorMemory& memory = memory_of(*thread.block);
  check_may_allocate(engine, thread, memory, columns, site);
  const std::uint32_t place = at & 0xFFFFFFU;
  const TensorAllocation taken{first_column(engine, thread, place, columns, pair, site), columns, place, site};
  memory.allocations.push_back(taken);
  memory.history.push_back(taken);
  const TensorUse use = use_of(engine, thread, TensorUse::What::allocation, site);
  for (std::uint32_t quarter = 0; quarter < tensor_quarters; ++quarter) {
    for (std::uint32_t column = taken.first; column < taken.first + columns; ++column) {
      memory.cells[quarter * tensor_columns + column] = {use, 0, {}};
    }
  }
  shared_write(at, &taken.first, sizeof taken.first, Space::own, where);
}

}  // namespace

void tensor_allocate(std::uint32_t at, std::uint32_t columns, bool pair, Site where) {
  constexpr const char* call = "tensor_memory::allocate";
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  check_tensor_group(engine, thread, pair, call, site);
  const bool acts = meet(engine, thread, call, std::uint64_t{columns} << 32U | at, site, where);
  thread.tensor_arrived = thread.tensor_uses;
  if (acts) {
    allocate_columns(engine, thread, at, columns, pair, site, where);
  }
  warp_exchange(call, 0, everyone, false, where);
}

void tensor_deallocate(std::uint32_t address, std::uint32_t columns, bool pair, Site where) {
  constexpr const char* call = "tensor_memory::deallocate";
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  check_tensor_group(engine, thread, pair, call, site);
  const bool acts = meet(engine, thread, call, std::uint64_t{columns} << 32U | address, site, where);
  thread.tensor_arrived = thread.tensor_uses;
  if (!acts) {
    return;
  }
  TensorMemory& memory = memory_of(*thread.block);
  const auto taken =
      std::find_if(memory.allocations.begin(), memory.allocations.end(),
                   [&](const TensorAllocation& one) { return one.first == address && one.columns == columns; });
  if (taken == memory.allocations.end()) {
    engine.findings.fatal(FindingKind::tensor_allocation,
                          sentence(engine, thread, call, site) + " of " + std::to_string(columns) + " columns at " +
                              std::to_string(address) + ", which no allocation returned so");
  }
  const WarpKnowledge known(*thread.warp);
  touch_tensor_memory(
      engine, *thread.block, {.first = address, .columns = columns}, TensorTouch::give_back,
      {use_of(engine, thread, TensorUse::What::allocation, site), &known.seen, &known.tensor_seen, call});
  memory.allocations.erase(taken);
  give_back_columns(engine, *thread.block, address);
}

void tensor_give_up_allocation(bool pair, Site where) {
  constexpr const char* call = "tensor_memory::give_up_allocation";
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  check_tensor_group(engine, thread, pair, call, site);
  meet(engine, thread, call, 0, site, where);
  thread.tensor_arrived = thread.tensor_uses;
  memory_of(*thread.block).gave_up = true;
  give_up_allocation(engine, *thread.block);
}

std::uint64_t tensor_load(std::uint32_t address, bool rows, std::uint32_t slab, std::uint32_t columns,
                          std::uint32_t* words, Site where) {
  constexpr const char* call = "a load of tensor memory";
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  const std::uint32_t quarter = thread.in_block / 32 % tensor_quarters;
  const std::uint32_t column = address & 0xFFFFU;
  if (meet(engine, thread, call, std::uint64_t{slab} << 32U | address, site, where)) {
    if (address >> 16U != 0) {
      engine.findings.fatal(FindingKind::wrong_lanes, sentence(engine, thread, call, site) + " is of lanes from " +
                                                          std::to_string(quarter * 32 + (address >> 16U)) +
                                                          " on; its warp reaches the 32 of its own quarter alone");
    }
    const WarpKnowledge known(*thread.warp);
    const std::uint8_t slabs = rows ? both_slabs : slab == 0 ? lower_slab : upper_slab;
    touch_tensor_memory(engine, *thread.block,
                        {.quarters = 1U << quarter, .slabs = slabs, .first = column, .columns = columns},
                        TensorTouch::load,
                        {use_of(engine, thread, TensorUse::What::load, site), &known.seen, &known.tensor_seen, call});
  }
  const std::vector<std::uint32_t>& from = thread.block->tensor_memory->words;
  const std::uint32_t lane = thread.in_block % 32;
  if (rows) {
    std::memcpy(words, &from[(std::size_t{quarter} * 32 + lane) * tensor_columns + column], columns * sizeof *words);
    return thread.tensor_uses;
  }
  for (std::uint32_t i = 0; i < columns / 2; ++i) {
    const std::size_t row = quarter * 32 + slab * 16 + lane / 4 + i % 4 / 2 * 8;
    words[i] = from[row * tensor_columns + column + i / 4 * 8 + lane % 4 * 2 + i % 2];
  }
  return thread.tensor_uses;
}

void tensor_wait_loads(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  engine.scheduler.pause(thread);
  warp_exchange("tensor_memory::wait_loads", 0, everyone, false, where);
  thread.tensor_arrived = thread.tensor_uses;
}

void tensor_check_loaded(std::uint64_t load, Site where) {
  Engine& engine = Engine::current();
  const Thread& thread = Engine::self();
  if (thread.tensor_arrived >= load) {
    return;
  }
  const std::uint32_t site = engine.sites.number(where);
  if (engine.findings.first_time(FindingKind::accumulator_in_flight, site, 0)) {
    engine.findings.report(FindingKind::accumulator_in_flight,
                           sentence(engine, thread, "what a load of tensor memory brings, read", site) +
                               " before tensor_memory::wait_loads");
  }
}

void tensor_before_barrier(Site) {
  Thread& thread = Engine::self();
  if (thread.warp->tensor_lane != 0) {
    const auto lane = static_cast<Lane>(thread.warp->tensor_lane + thread.in_block % 32);
    Ordering::learn(thread, lane, thread.tensor_arrived);
  }
}

void tensor_after_barrier(Site) {
  Thread& thread = Engine::self();
  thread.tensor_seen = thread.knowledge.seen;
}

}  // namespace thresher::emulator::calls
