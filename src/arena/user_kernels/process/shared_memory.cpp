#include "arena/user_kernels/process/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr std::size_t smallest_piece = std::size_t{8} << 20;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

SharedMemory::~SharedMemory() {
  for (const SharedPiece& piece : pieces_) {
    unmap(piece);
  }
}

void SharedMemory::unmap(const SharedPiece& piece) noexcept { ::munmap(piece.base(), piece.bytes()); }

void SharedMemory::shrink() {
  for (const SharedPiece& piece : pieces_) {
    if (piece.is_free()) {
      process_.ask_later(Writer(Ask::unshare).put(piece.number()));
      unmap(piece);
    }
  }
  std::erase_if(pieces_, [](const SharedPiece& piece) { return piece.is_free(); });
}

SharedPiece& SharedMemory::share(std::size_t bytes) {
  shrink();
  const std::size_t size = round_up(std::max(bytes, smallest_piece), smallest_piece);
  OwnedDescriptor memory(make_shared_memory(size));
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (base == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{} MiB of memory are not to be had: use a smaller problem or free some", size >> 20));
  }
  pieces_.emplace_back(process_.next_number(), base, size);
  process_.ask_later(Writer(Ask::share).put(pieces_.back().number()).put(static_cast<std::uint64_t>(size)),
                     std::move(memory));
  return pieces_.back();
}

void* SharedMemory::allocate(std::size_t bytes) {
  const std::size_t wanted = SharedPiece::rounded(bytes);
  void* memory = nullptr;
  for (SharedPiece& piece : pieces_) {
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

DelayedInput& SharedMemory::delay_input(std::span<std::byte> place) {
  return held_.try_emplace(place.data(), place).first->second;
}

DelayedInput* SharedMemory::held(const void* address) {
  const auto* const wanted = static_cast<const std::byte*>(address);
  const auto nearest = held_.lower_bound(wanted);  // the last that begins no later
  return nearest != held_.end() && wanted < nearest->first + nearest->second.place().size() ? &nearest->second
                                                                                            : nullptr;
}

void SharedMemory::release(void* memory) noexcept {
  const auto taken = taken_.find(memory);
  const auto* const address = static_cast<const std::byte*>(memory);
  for (SharedPiece& piece : pieces_) {
    if (taken != taken_.end() && piece.holds(memory)) {
      held_.erase(held_.upper_bound(address + taken->second), held_.upper_bound(address));
      piece.give_back(memory, taken->second);
      taken_.erase(taken);
      return;
    }
  }
}

void SharedMemory::fill(void* to, std::uint8_t byte, std::size_t bytes) {
  if (DelayedInput* const back = held(to)) {
    back->fill(back->offset(to), std::byte{byte}, bytes);
  } else {
    std::memset(to, byte, bytes);
  }
}

void SharedMemory::upload(void* to, const void* from_host, std::size_t bytes) {
  if (DelayedInput* const back = held(to)) {
    back->upload(back->offset(to), {static_cast<const std::byte*>(from_host), bytes});
  } else {
    std::memcpy(to, from_host, bytes);
  }
}

void SharedMemory::download(void* to_host, const void* from, std::size_t bytes) {
  if (const DelayedInput* const back = held(from)) {
    back->download(back->offset(from), {static_cast<std::byte*>(to_host), bytes});
  } else {
    std::memcpy(to_host, from, bytes);
  }
}

std::size_t SharedMemory::available_bytes() { return HostMemory().available_bytes(); }

std::uintptr_t SharedMemory::place(std::uintptr_t address) const {
  for (const SharedPiece& piece : pieces_) {
    if (piece.holds(reinterpret_cast<const void*>(address))) {
      return piece.place(address);
    }
  }
  throw Error(ErrorCode::internal, "a kernel was to be given memory that its process does not share");
}

}  // namespace thresher::arena::user_kernels
