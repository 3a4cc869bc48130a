// Ordinary accesses to shared and global memory.
#include "machine/emulator/engine/memory.hpp"

#include <algorithm>
#include <cstring>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {

Memory::Memory(const LaunchShape& shape, const GlobalMemory& global, const Cluster& cluster, const Ordering& ordering,
               const Words& words, Findings& findings)
    : shape_(shape), cluster_(cluster), ordering_(ordering), words_(words), findings_(findings) {
  for (const auto& buffer : global.buffers()) {
    const bool shadowed = buffer.use == Use::output || buffer.use == Use::input_output;
    buffers_.push_back(
        {&buffer, shadowed ? std::make_unique<Shadow>(buffer.bytes, buffer.use == Use::input_output) : nullptr});
  }
}

Block& Memory::block_of(std::uint32_t address) const {
  const std::uint32_t rank = address >> 24;
  return *cluster_.blocks[rank < cluster_.blocks.size() ? rank : 0];
}

std::uint8_t* Memory::shared_bytes(std::uint32_t address, std::uint64_t bytes, std::uint32_t alignment,
                                   const char* call, std::uint32_t site_number) {
  Block& block = block_of(address);
  const std::uint32_t offset = address & 0xFFFFFFU;
  if (address >> 24 >= cluster_.blocks.size() || offset + bytes > block.bytes.size()) {
    findings_.fatal(FindingKind::out_of_bounds, call + words_.at(site_number) + words_.by_current() +
                                                    " touches shared bytes " + std::to_string(offset) + "-" +
                                                    std::to_string(offset + bytes - 1) + ", but the block has " +
                                                    std::to_string(block.bytes.size()));
    return nullptr;
  }
  if (offset % alignment != 0) {
    findings_.fatal(FindingKind::misaligned, call + words_.at(site_number) + words_.by_current() + " of " +
                                                 words_.of_shared(block, offset, bytes) +
                                                 " needs an address that is a multiple of " +
                                                 std::to_string(alignment));
    return nullptr;
  }
  return block.bytes.data() + offset;
}

void Memory::check_shared(Block& block, std::uint64_t offset, std::uint64_t bytes, const Observer& observer) {
  checked_block_ = &block;
  block.shadow.access(offset, bytes, observer, *this);
  checked_block_ = nullptr;
}

GlobalBuffer* Memory::global_buffer(std::uint64_t address, std::uint64_t bytes, std::uint32_t alignment,
                                    const char* call, std::uint32_t site_number) {
  const auto holds = [&](const GlobalBuffer& entry) {
    return address >= entry.buffer->address && address + bytes <= entry.buffer->address + entry.buffer->bytes;
  };
  if (last_buffer_ >= buffers_.size() || !holds(buffers_[last_buffer_])) {
    const auto next = std::upper_bound(
        buffers_.begin(), buffers_.end(), address,
        [](std::uint64_t wanted, const GlobalBuffer& entry) { return wanted < entry.buffer->address; });
    const GlobalBuffer* nearest = next == buffers_.begin() ? nullptr : &*(next - 1);
    if (nearest == nullptr || !holds(*nearest)) {
      std::string where = "an address in no buffer of the launch";
      if (nearest != nullptr && address < nearest->buffer->address + nearest->buffer->bytes + (1U << 20)) {
        where = Words::of_global(*nearest->buffer, address - nearest->buffer->address, bytes);
      }
      findings_.fatal(FindingKind::out_of_bounds,
                      call + words_.at(site_number) + words_.by_current() + " touches " + where);
      return nullptr;
    }
    last_buffer_ = static_cast<std::size_t>(nearest - buffers_.data());
  }
  GlobalBuffer& found = buffers_[last_buffer_];
  if (address % alignment != 0) {
    findings_.fatal(FindingKind::misaligned,
                    call + words_.at(site_number) + words_.by_current() + " of " +
                        Words::of_global(*found.buffer, address - found.buffer->address, bytes) +
                        " needs an address that is a multiple of " + std::to_string(alignment));
    return nullptr;
  }
  return &found;
}

void Memory::check_global(GlobalBuffer& buffer, std::uint64_t address, std::uint64_t bytes, const Observer& observer) {
  const std::uint64_t offset = address - buffer.buffer->address;
  const Use use = buffer.buffer->use;
  if (shape_.after_earlier_grid && use != Use::input && observer.seen->at(ordering_.earlier_grid()) == 0 &&
      findings_.first_time(FindingKind::earlier_grid, observer.self.site, 0)) {
    findings_.report(FindingKind::earlier_grid,
                     Words::of_global(*buffer.buffer, offset, bytes) +
                         (use == Use::earlier_input ? ", which an earlier grid writes, "
                                                    : ", which an earlier grid may still read or write, ") +
                         words_.of(observer.self) + ": launch::wait_for_earlier_grids did not come before");
  }
  if (!buffer.shadow) {
    if (is_write(observer.self.kind) && findings_.first_time(FindingKind::out_of_bounds, observer.self.site, 1)) {
      findings_.report(FindingKind::out_of_bounds,
                       "input " + Words::of_global(*buffer.buffer, offset, bytes) + " was " + words_.of(observer.self));
    }
    return;
  }
  checked_buffer_ = &buffer;
  buffer.shadow->access(offset, bytes, observer, *this);
  checked_buffer_ = nullptr;
}

/// Classifies a conflict of two accesses.
void Memory::conflict(const Conflict& found) {
  const Access& earlier = found.earlier;
  const Access& later = found.later;
  FindingKind kind = FindingKind::race;
  std::string verdict;
  if (found.kind == ConflictKind::uninitialised) {
    kind = FindingKind::uninitialised;
    verdict = "nothing was written there before";
  } else if (found.kind == ConflictKind::barrier_bytes) {
    kind = FindingKind::barrier_misuse;
    verdict = "these bytes are a live barrier";
  } else if (found.kind == ConflictKind::not_fenced) {
    kind = FindingKind::missing_proxy_fence;
    verdict = "the writing thread did not execute fence::async_* between its store and the barrier";
  } else if (!is_write(later.kind) && (is_async(earlier.kind) || earlier.kind == AccessKind::copy_write)) {
    kind = FindingKind::read_before_full;
    verdict = "nothing that came before says that the copy is complete";
  } else if (is_write(later.kind) && earlier.kind == AccessKind::async_read) {
    kind = FindingKind::refilled_while_read;
    verdict = "nothing that came before says that the reading is complete";
  } else if (is_async(later.kind) && is_write(later.kind) && !is_write(earlier.kind)) {
    kind = FindingKind::refilled_while_read;
    verdict = "the reading is not ordered before the copy";
  } else if (earlier.kind == AccessKind::read_only || later.kind == AccessKind::read_only) {
    verdict = "bytes read through the read-only path may not be written during the launch";
  } else {
    verdict = "nothing orders the two";
  }
  if (!findings_.first_time(kind, later.site,
                            (std::uint64_t{earlier.site} << 8) | static_cast<std::uint64_t>(earlier.kind))) {
    return;
  }
  const std::string where = checked_block_ != nullptr
                                ? words_.of_shared(*checked_block_, found.offset, found.bytes)
                                : Words::of_global(*checked_buffer_->buffer, found.offset, found.bytes);
  std::vector<std::string> details;
  if (earlier.kind != AccessKind::none) {
    details.push_back("before: " + words_.of(earlier));
  }
  details.push_back(verdict);
  findings_.report(kind, where + " " + words_.of(later), std::move(details));
}

void Memory::note_remote(Block& target, const Access& use) {
  target.remote_uses.raise(use.lane, use.clock);
  target.last_remote = use;
}

void Memory::require_started(const Thread& thread, const Block& target, const char* call, std::uint32_t site_number) {
  if (target.rank == thread.block->rank) {
    return;
  }
  bool knows = thread.cluster_waits > 0;
  for (std::uint32_t t = 0; !knows && t < shape_.block; ++t) {
    knows = thread.knowledge.seen.at(static_cast<Lane>(target.first_thread + t)) != 0;
  }
  if (!knows && findings_.first_time(FindingKind::left_cluster_early, site_number, 1)) {
    findings_.report(FindingKind::left_cluster_early,
                     std::string(call) + " by " + words_.of(thread) + words_.at(site_number) + " reaches into " +
                         words_.of(target) + ", which may not have started: no cluster barrier came before");
  }
  if (target.running == 0 && findings_.first_time(FindingKind::left_cluster_early, site_number, 2)) {
    findings_.report(FindingKind::left_cluster_early, std::string(call) + " by " + words_.of(thread) +
                                                          words_.at(site_number) + " reaches into " +
                                                          words_.of(target) + ", which has ended");
  }
}

namespace calls {
namespace {

/// A thread that spins on plain loads must not prevent the others from running, nor run forever.
void count_access(Engine& engine, Thread& thread) {
  constexpr std::uint32_t accesses_before_yield = 20000;
  if (++thread.plain_accesses > accesses_before_yield) {
    thread.plain_accesses = 0;
    engine.scheduler.spin(thread, accesses_before_yield);
  }
}

Observer observe(const Engine& engine, const Thread& thread, AccessKind kind, std::uint32_t site) {
  return {engine.ordering.access(thread, kind, site), &thread.knowledge.seen, nullptr};
}

void check_space(Engine& engine, Thread& thread, std::uint32_t address, Space space, const char* call,
                 std::uint32_t site) {
  if (address >> 24 == thread.block->rank) {
    return;
  }
  if (space == Space::own) {
    engine.findings.fatal(FindingKind::out_of_bounds,
                          std::string(call) + engine.words.at(site) + " by " + engine.words.of(thread) +
                              " uses a handle to another block's shared memory; map it with cluster::map");
  }
  engine.memory.require_started(thread, engine.memory.block_of(address), call, site);
}

template <typename T>
T read_as(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void add(std::uint8_t* at, void* value) {
  const T previous = read_as<T>(at);
  const T sum = static_cast<T>(previous + read_as<T>(static_cast<std::uint8_t*>(value)));
  std::memcpy(at, &sum, sizeof sum);
  std::memcpy(value, &previous, sizeof previous);
}

void apply(Atomic what, std::uint8_t* at, void* value, const void* expected, std::uint32_t bytes) {
  switch (what) {
    case Atomic::add_u32: add<std::uint32_t>(at, value); break;
    case Atomic::add_u64: add<std::uint64_t>(at, value); break;
    case Atomic::add_f32: add<float>(at, value); break;
    case Atomic::exchange:
    case Atomic::compare_exchange: {
      std::uint8_t previous[8];
      std::memcpy(previous, at, bytes);
      if (what == Atomic::exchange || std::memcmp(previous, expected, bytes) == 0) {
        std::memcpy(at, value, bytes);
      }
      std::memcpy(value, previous, bytes);
      break;
    }
  }
}

}  // namespace

void shared_read(std::uint32_t address, void* value, std::uint32_t bytes, Space space, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  count_access(engine, thread);
  check_space(engine, thread, address, space, "load", site);
  const std::uint8_t* from = engine.memory.shared_bytes(address, bytes, bytes, "load", site);
  Block& block = engine.memory.block_of(address);
  const Observer observer = observe(engine, thread, AccessKind::read, site);
  engine.memory.check_shared(block, address & 0xFFFFFFU, bytes, observer);
  if (&block != thread.block) {
    engine.memory.note_remote(block, observer.self);
  }
  std::memcpy(value, from, bytes);
}

void shared_write(std::uint32_t address, const void* value, std::uint32_t bytes, Space space, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  count_access(engine, thread);
  check_space(engine, thread, address, space, "store", site);
  std::uint8_t* to = engine.memory.shared_bytes(address, bytes, bytes, "store", site);
  Block& block = engine.memory.block_of(address);
  const Observer observer = observe(engine, thread, AccessKind::write, site);
  engine.memory.check_shared(block, address & 0xFFFFFFU, bytes, observer);
  if (&block != thread.block) {
    engine.memory.note_remote(block, observer.self);
  }
  std::memcpy(to, value, bytes);
}

void shared_atomic(std::uint32_t address, void* value, std::uint32_t bytes, Atomic what, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  check_space(engine, thread, address, Space::own, "atomic", site);
  std::uint8_t* at = engine.memory.shared_bytes(address, bytes, bytes, "atomic", site);
  engine.memory.check_shared(*thread.block, address & 0xFFFFFFU, bytes,
                             observe(engine, thread, AccessKind::atomic, site));
  apply(what, at, value, nullptr, bytes);
  engine.scheduler.progress();
}

void global_read(std::uint64_t address, void* value, std::uint32_t bytes, GlobalRead how, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  if (how == GlobalRead::acquire) {
    engine.scheduler.poll(thread, {Wait::What::memory, site, 0, nullptr});
  } else {
    count_access(engine, thread);
  }
  const AccessKind kind = how == GlobalRead::acquire     ? AccessKind::atomic_read
                          : how == GlobalRead::read_only ? AccessKind::read_only
                                                         : AccessKind::read;
  GlobalBuffer* buffer = engine.memory.global_buffer(address, bytes, bytes, "load", site);
  engine.memory.check_global(*buffer, address, bytes, observe(engine, thread, kind, site));
  std::memcpy(value, reinterpret_cast<const void*>(address), bytes);
  if (how == GlobalRead::acquire) {
    engine.ordering.acquire(thread, address);
    std::uint64_t word = 0;
    std::memcpy(&word, value, bytes);
    if (address != thread.polled_address || word != thread.polled_word) {
      engine.scheduler.progress();  // not a poll that got the same result again
    }
    thread.polled_address = address;
    thread.polled_word = word;
  }
}

void global_write(std::uint64_t address, const void* value, std::uint32_t bytes, GlobalWrite how, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  count_access(engine, thread);
  const bool releases = how == GlobalWrite::release;
  GlobalBuffer* buffer = engine.memory.global_buffer(address, bytes, bytes, "store", site);
  engine.memory.check_global(*buffer, address, bytes,
                             observe(engine, thread, releases ? AccessKind::atomic : AccessKind::write, site));
  if (buffer->shadow) {
    std::memcpy(reinterpret_cast<void*>(address), value, bytes);
  }
  if (releases) {
    engine.ordering.release(thread, address);
    engine.scheduler.progress();
    engine.scheduler.pause(thread);
  }
}

void global_atomic(std::uint64_t address, void* value, const void* expected, std::uint32_t bytes, Atomic what,
                   bool acquire_release, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  GlobalBuffer* buffer = engine.memory.global_buffer(address, bytes, bytes, "atomic", site);
  engine.memory.check_global(*buffer, address, bytes, observe(engine, thread, AccessKind::atomic, site));
  if (!buffer->shadow) {
    return;
  }
  apply(what, reinterpret_cast<std::uint8_t*>(address), value, expected, bytes);
  if (acquire_release) {
    engine.ordering.acquire(thread, address);
    engine.ordering.release(thread, address);
  }
  engine.scheduler.progress();
}

void fence_async(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  static_cast<void>(engine.sites.number(where));
  engine.ordering.fence_async(thread, thread.knowledge.fenced_shared);
  ++thread.news;
  Ordering::tick(thread);
}

}  // namespace calls
}  // namespace thresher::emulator
