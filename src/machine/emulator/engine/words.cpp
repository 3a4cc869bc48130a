// The sentences of findings.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {
namespace {

std::string named(const char* name, std::uint32_t index) { return fmt::format("{}[{}]", name, index); }

const char* verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::none: return "nothing";
    case AccessKind::read: return "read";
    case AccessKind::write: return "written";
    case AccessKind::atomic:
    case AccessKind::atomic_read: return "accessed atomically";
    case AccessKind::read_only: return "read through the read-only path";
    case AccessKind::copy_write: return "written by cp.async";
    case AccessKind::async_read: return "read asynchronously";
    case AccessKind::async_write: return "written asynchronously";
  }
  return "?";
}

}  // namespace

/// The path begins at its last "src/", "tests/" or "bench/".
std::string Words::at(std::uint32_t site_number) const {
  const Site& site = sites_.at(site_number);
  if (site.line == 0) {
    return "";
  }
  const std::string file = site.file;
  std::size_t start = 0;
  for (const char* top : {"/src/", "/tests/", "/bench/"}) {
    const std::size_t found = file.rfind(top);
    if (found != std::string::npos) {
      start = std::max(start, found + 1);
    }
  }
  return fmt::format(" at {}:{}", file.substr(start), site.line);
}

std::string Words::of(const Block& block) const {
  const std::string text = fmt::format("block ({},{},{})", block.at.x, block.at.y, block.at.z);
  return cluster_.blocks.size() > 1 ? fmt::format("{} (rank {} of its cluster)", text, block.rank) : text;
}

std::string Words::of(const Thread& thread) const {
  const std::string role = thread.role != nullptr ? fmt::format(" ({})", named(thread.role, thread.role_index)) : "";
  return fmt::format("thread {}{} of {}", thread.in_block, role, of(*thread.block));
}

std::string Words::of(const Warpgroup& group) const {
  const std::uint32_t first = group.index * 128;
  const Thread& thread = *cluster_.threads[group.block->first_thread + first];
  const std::string role = thread.role != nullptr ? fmt::format(", {}", named(thread.role, thread.role_index)) : "";
  return fmt::format("warpgroup {} (threads {}-{}{}) of {}", group.index, first, first + 127, role, of(*group.block));
}

std::string Words::of(const Mbarrier& barrier) const {
  const std::string name =
      barrier.name != nullptr ? named(barrier.name, barrier.index) : fmt::format("at byte {}", barrier.offset);
  const std::string flight =
      barrier.in_flight_bytes != 0 ? fmt::format(", {} bytes in flight", barrier.in_flight_bytes) : "";
  return fmt::format("barrier {} of {} [phase {}, arrived {} of {}, awaits {} bytes{}]", name, of(*barrier.block),
                     barrier.phase - barrier.first_phase, barrier.expected - barrier.pending, barrier.expected,
                     barrier.bytes, flight);
}

std::string Words::of(const Access& access) const {
  const char* done = verb(access.kind);
  if (access.cluster != cluster_.serial) {
    return fmt::format("{} by a thread of another cluster{}", done, at(access.site));
  }
  const LaneOwner& owner = ordering_.owner(access.lane);
  const auto by = [&](const std::string& who) { return fmt::format("{} by {}{}", done, who, at(access.site)); };
  const auto by_group = [&](const char* what, const std::string& who) {
    return by(fmt::format("{} of {} (its group {})", what, who, access.clock));
  };
  switch (owner.what) {
    case LaneOwner::What::thread: return by(of(*static_cast<const Thread*>(owner.object)));
    case LaneOwner::What::barrier: {
      const auto& barrier = *static_cast<const Mbarrier*>(owner.object);
      return by(fmt::format("a copy that completes phase {} of {}, issued", access.clock - 1 - barrier.first_phase,
                            of(barrier)));
    }
    case LaneOwner::What::products: return by_group("wgmma", of(*static_cast<const Warpgroup*>(owner.object)));
    case LaneOwner::What::stores_read:
    case LaneOwner::What::stores_written: return by_group("a TMA store", of(*static_cast<const Thread*>(owner.object)));
    case LaneOwner::What::copies: return by_group("cp.async", of(*static_cast<const Thread*>(owner.object)));
    case LaneOwner::What::earlier_grid: return by("the earlier grid");
    case LaneOwner::What::release: return by("another cluster");
    case LaneOwner::What::tensor_uses: return by(of(*static_cast<const Thread*>(owner.object)));
    case LaneOwner::What::tensor_pipe: return by("tcgen05 of " + of(*static_cast<const Thread*>(owner.object)));
  }
  return done;
}

std::string Words::of_shared(const Block& block, std::uint64_t offset, std::uint64_t bytes) const {
  const std::string text = fmt::format("shared bytes {}-{} of {}", offset, offset + bytes - 1, of(block));
  for (const NamedBytes& name : block.names) {
    if (offset >= name.offset && offset < name.offset + std::uint64_t{name.bytes}) {
      return fmt::format("{} ({} + {})", text, named(name.name, name.index), offset - name.offset);
    }
  }
  return text;
}

std::string Words::of_global(const GlobalMemory::Buffer& buffer, std::uint64_t offset, std::uint64_t bytes) {
  return fmt::format("bytes {}-{} of '{}' ({} bytes)", offset, offset + bytes - 1, buffer.name, buffer.bytes);
}

std::string Words::by_current() const { return cluster_.current != nullptr ? " by " + of(*cluster_.current) : ""; }

std::string Words::of_flight(const Mbarrier& barrier) const {
  const bool shared = std::string_view(barrier.in_flight_call).find("multicast") != std::string_view::npos;
  return fmt::format("{} into its shared memory was in flight: {} by {}{}", shared ? "a multicast" : "a copy",
                     barrier.in_flight_call, of(*barrier.in_flight_thread), at(barrier.in_flight_site));
}

std::string Words::of(const std::vector<const Thread*>& group) const {
  const auto alike = [](const Thread& a, const Thread& b) {
    return a.block == b.block && a.role == b.role && a.role_index == b.role_index;
  };
  std::string text;
  for (std::size_t i = 0; i < group.size();) {
    const Thread& first = *group[i];
    std::string ranges;
    std::size_t members = 0;
    while (i < group.size() && alike(*group[i], first)) {
      const std::uint32_t from = group[i]->in_block;
      std::uint32_t to = from;
      for (++i, ++members; i < group.size() && alike(*group[i], first) && group[i]->in_block == to + 1;
           ++i, ++members) {
        ++to;
      }
      ranges += fmt::format("{}{}", ranges.empty() ? "" : ",", from);
      ranges += to != from ? fmt::format("-{}", to) : "";
    }
    const std::string role = first.role != nullptr ? fmt::format(" ({})", named(first.role, first.role_index)) : "";
    text += fmt::format("{}thread{} {}{} of {}", text.empty() ? "" : "; ", members > 1 ? "s" : "", ranges, role,
                        of(*first.block));
  }
  return text;
}

/// Why the multiprocessor of `block` has no free columns.
std::string Words::of_holders(const Block& block) const {
  std::string text;
  for (const HeldColumns& held : block.multiprocessor->held) {
    text += fmt::format(", {} holds {}", held.block == nullptr ? "a stranger" : of(*held.block), held.columns);
  }
  const Block* const allocating = block.multiprocessor->allocating;
  if (allocating != nullptr && allocating != &block) {
    text += fmt::format(", {} has not given up allocation", of(*allocating));
  }
  return text;
}

std::string Words::of(const Wait& wait) const {
  const std::string where = at(wait.site);
  switch (wait.what) {
    case Wait::What::nothing: return "run";
    case Wait::What::barrier:
      return fmt::format("wait for parity {} of {}{}", wait.number, of(*static_cast<const Mbarrier*>(wait.object)),
                         where);
    case Wait::What::block_barrier: {
      const auto& barrier = *static_cast<const BlockBarrier*>(wait.object);
      const std::string name = wait.number == 0 ? "block::sync" : fmt::format("named barrier {}", wait.number);
      return fmt::format("wait at {} ({} of {} threads arrived){}", name, barrier.arrived.size(), barrier.threads,
                         where);
    }
    case Wait::What::cluster_barrier:
      return fmt::format("wait at the cluster barrier ({} of {} threads arrived){}", cluster_.barrier.arrived,
                         cluster_.running, where);
    case Wait::What::warp: {
      const auto& meeting = *static_cast<const WarpMeeting*>(wait.object);
      return fmt::format("wait in {} for the rest of their warp (lanes {:08x} are there){}", meeting.call,
                         meeting.arrived, where);
    }
    case Wait::What::products: return fmt::format("wait for wgmma group {} of their warpgroup{}", wait.number, where);
    case Wait::What::stores_read:
    case Wait::What::stores_written: return fmt::format("wait for their TMA store group {}{}", wait.number, where);
    case Wait::What::copies: return fmt::format("wait for their cp.async group {}{}", wait.number, where);
    case Wait::What::registers:
      return fmt::format("wait for registers ({} a thread asked, {} free in the pool){}", wait.number,
                         static_cast<const Block*>(wait.object)->free_registers, where);
    case Wait::What::tensor_columns:
      return fmt::format("wait for {} columns of tensor memory{}{}", wait.number, where,
                         of_holders(*static_cast<const Block*>(wait.object)));
    case Wait::What::memory: return fmt::format("poll memory{}", where);
  }
  return "?";
}

}  // namespace thresher::emulator
