#include "arena/user_kernels/process/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t smallest_piece = std::size_t{8} << 20;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

void* SharedMemory::Piece::take(std::size_t wanted) {
  for (const auto& [offset, count] : free) {
    if (count >= wanted) {
      const std::size_t begin = offset;
      const std::size_t rest = count - wanted;
      free.erase(begin);
      if (rest > 0) {
        free.emplace(begin + wanted, rest);
      }
      return base + begin;
    }
  }
  return nullptr;
}

void SharedMemory::Piece::give_back(std::size_t offset, std::size_t count) {
  auto here = free.emplace(offset, count).first;
  if (const auto next = std::next(here); next != free.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free.erase(next);
  }
  if (here != free.begin()) {
    if (const auto before = std::prev(here); before->first + before->second == here->first) {
      before->second += here->second;
      free.erase(here);
    }
  }
}

SharedMemory::~SharedMemory() {
  for (const Piece& piece : pieces_) {
    unmap(piece);
  }
}

void SharedMemory::unmap(const Piece& piece) noexcept { ::munmap(piece.base, piece.bytes); }

void SharedMemory::shrink() {
  for (const Piece& piece : pieces_) {
    if (piece.is_free()) {
      process_.ask_later(Writer(Ask::unshare).put(piece.number));
      unmap(piece);
    }
  }
  std::erase_if(pieces_, [](const Piece& piece) { return piece.is_free(); });
}

SharedMemory::Piece& SharedMemory::share(std::size_t bytes) {
  shrink();
  const std::size_t size = round_up(std::max(bytes, smallest_piece), smallest_piece);
  OwnedDescriptor memory(make_shared_memory(size));
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (base == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{} MiB of memory are not to be had: use a smaller problem or free some", size >> 20));
  }
  pieces_.push_back({process_.next_number(), static_cast<std::byte*>(base), size, {{0, size}}});
  process_.ask_later(Writer(Ask::share).put(pieces_.back().number).put(static_cast<std::uint64_t>(size)),
                     std::move(memory));
  return pieces_.back();
}

void* SharedMemory::allocate(std::size_t bytes) {
  const std::size_t wanted = round_up(std::max<std::size_t>(bytes, 1), alignment);
  void* memory = nullptr;
  for (Piece& piece : pieces_) {
    if ((memory = piece.take(wanted)) != nullptr) {
      break;
    }
  }
  if (memory == nullptr) {
    memory = share(wanted).take(wanted);
  }
  taken_.emplace(memory, wanted);
  return memory;
}

HeldBack& SharedMemory::hold_back(std::span<std::byte> place) {
  return held_.try_emplace(place.data(), place).first->second;
}

HeldBack* SharedMemory::held(const void* address) {
  const auto* const wanted = static_cast<const std::byte*>(address);
  const auto nearest = held_.lower_bound(wanted);  // the last that begins no later
  return nearest != held_.end() && wanted < nearest->first + nearest->second.place().size() ? &nearest->second : nullptr;
}

void SharedMemory::release(void* memory) noexcept {
  const auto taken = taken_.find(memory);
  const auto* const address = static_cast<const std::byte*>(memory);
  for (Piece& piece : pieces_) {
    if (taken != taken_.end() && address >= piece.base && address < piece.base + piece.bytes) {
      held_.erase(held_.upper_bound(address + taken->second), held_.upper_bound(address));
      piece.give_back(static_cast<std::size_t>(address - piece.base), taken->second);
      taken_.erase(taken);
      return;
    }
  }
}

void SharedMemory::fill(void* to, std::uint8_t byte, std::size_t bytes) {
  if (HeldBack* const back = held(to)) {
    back->fill(back->offset(to), std::byte{byte}, bytes);
  } else {
    std::memset(to, byte, bytes);
  }
}

void SharedMemory::upload(void* to, const void* from_host, std::size_t bytes) {
  if (HeldBack* const back = held(to)) {
    back->upload(back->offset(to), {static_cast<const std::byte*>(from_host), bytes});
  } else {
    std::memcpy(to, from_host, bytes);
  }
}

void SharedMemory::download(void* to_host, const void* from, std::size_t bytes) {
  if (const HeldBack* const back = held(from)) {
    back->download(back->offset(from), {static_cast<std::byte*>(to_host), bytes});
  } else {
    std::memcpy(to_host, from, bytes);
  }
}

std::size_t SharedMemory::available_bytes() { return HostMemory().available_bytes(); }

std::uintptr_t SharedMemory::place(std::uintptr_t address) const {
  for (const Piece& piece : pieces_) {
    const auto base = reinterpret_cast<std::uintptr_t>(piece.base);
    if (address >= base && address < base + piece.bytes) {
      return place_of(piece.number, address - base);
    }
  }
  throw Error(ErrorCode::internal, "a kernel was to be given memory that its process does not share");
}

}  // namespace thresher::arena::user_kernels
