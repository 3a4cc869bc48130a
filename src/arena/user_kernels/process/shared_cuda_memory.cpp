#include "arena/user_kernels/process/shared_cuda_memory.hpp"

#include <algorithm>

#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// Each piece takes a system call and a mapping in both processes.
constexpr std::size_t smallest_gpu_piece = std::size_t{64} << 20;
/// Reserved for two contexts, and for a framework's own memory.
constexpr std::size_t reserved_gpu_bytes = std::size_t{4} << 30;

}  // namespace

void SharedCudaMemory::shrink() {
  std::erase_if(shared_, [&](const Shared& shared) {
    if (shared.piece.is_free()) {
      process_.ask_later(Writer(Ask::unshare).put(shared.piece.number()));
    }
    return shared.piece.is_free();
  });
}

SharedCudaMemory::Shared& SharedCudaMemory::share(std::size_t bytes) {
  shrink();
  runtime::ExportedMemory memory(ordinal_, std::max(bytes, smallest_gpu_piece));
  OwnedDescriptor descriptor(memory.descriptor());
  const SharedPiece piece(process_.next_number(), memory.data(), memory.bytes());
  shared_.push_back({std::move(memory), piece});
  process_.ask_later(Writer(Ask::share).put(piece.number()).put(static_cast<std::uint64_t>(piece.bytes())),
                     std::move(descriptor));
  return shared_.back();
}

void* SharedCudaMemory::allocate(std::size_t bytes) {
  const std::size_t wanted = SharedPiece::rounded(bytes);
  void* memory = nullptr;
  for (Shared& shared : shared_) {
    if ((memory = shared.piece.take(wanted)) != nullptr) {
      break;
    }
  }
  if (memory == nullptr) {
    memory = share(wanted).piece.take(wanted);
  }
  taken_.emplace(memory, wanted);
  return memory;
}

void SharedCudaMemory::release(void* memory) noexcept {
  const auto taken = taken_.find(memory);
  const auto* const address = static_cast<const std::byte*>(memory);
  for (Shared& shared : shared_) {
    if (taken != taken_.end() && shared.piece.holds(memory)) {
      held_.erase(held_.upper_bound(address + taken->second), held_.upper_bound(address));
      shared.piece.give_back(memory, taken->second);
      taken_.erase(taken);
      return;
    }
  }
}

void SharedCudaMemory::delay_input(std::span<std::byte> place) {
  if (place.empty() || held_.contains(place.data())) {
    return;
  }
  Held held{place, runtime::DeviceBuffer(ordinal_, place.size(), "what a kernel is not given"), false};
  runtime::copy(held.kept.data(), place.data(), place.size(), ordinal_);
  runtime::fill_async(place.data(), 0, place.size(), Stream{}, ordinal_);
  runtime::synchronize(Stream{}, ordinal_);
  held_.emplace(place.data(), std::move(held));
}

void SharedCudaMemory::put_in(std::span<const std::span<std::byte>> places) {
  bool any = false;
  for (const std::span<std::byte> place : places) {
    const auto found = held_.find(place.data());
    if (found != held_.end() && !found->second.is_in) {
      runtime::copy_async(place.data(), found->second.kept.data(), place.size(), Stream{}, ordinal_);
      found->second.is_in = any = true;
    }
  }
  if (any) {
    runtime::synchronize(Stream{}, ordinal_);
  }
}

SharedCudaMemory::Held* SharedCudaMemory::held(const void* address) {
  const auto* const wanted = static_cast<const std::byte*>(address);
  const auto nearest = held_.lower_bound(wanted);  // the last that begins no later
  return nearest != held_.end() && wanted < nearest->first + nearest->second.place.size() ? &nearest->second : nullptr;
}

void* SharedCudaMemory::writable(void* to) {
  Held* const back = held(to);
  if (back == nullptr) {
    return to;
  }
  if (back->is_in) {
    runtime::copy(back->kept.data(), back->place.data(), back->place.size(), ordinal_);
    back->is_in = false;
  }
  return static_cast<std::byte*>(back->kept.data()) + (static_cast<std::byte*>(to) - back->place.data());
}

const void* SharedCudaMemory::readable(const void* from) {
  const Held* const back = held(from);
  if (back == nullptr || back->is_in) {
    return from;
  }
  return static_cast<const std::byte*>(back->kept.data()) + (static_cast<const std::byte*>(from) - back->place.data());
}

void SharedCudaMemory::fill(void* to, std::uint8_t byte, std::size_t bytes) {
  runtime::fill_async(writable(to), byte, bytes, Stream{}, ordinal_);
  runtime::synchronize(Stream{}, ordinal_);
}

void SharedCudaMemory::upload(void* to, const void* from_host, std::size_t bytes) {
  runtime::copy(writable(to), from_host, bytes, ordinal_);
}

void SharedCudaMemory::download(void* to_host, const void* from, std::size_t bytes) {
  runtime::copy(to_host, readable(from), bytes, ordinal_);
}

std::size_t SharedCudaMemory::available_bytes() {
  const std::size_t free_bytes = runtime::memory_info(ordinal_).free_bytes;
  return free_bytes > reserved_gpu_bytes ? free_bytes - reserved_gpu_bytes : 0;
}

std::uintptr_t SharedCudaMemory::place(std::uintptr_t address) const {
  for (const Shared& shared : shared_) {
    if (shared.piece.holds(reinterpret_cast<const void*>(address))) {
      return shared.piece.place(address);
    }
  }
  throw Error(ErrorCode::internal, "a kernel was to be given memory that its process does not share");
}

}  // namespace thresher::arena::user_kernels
