#include "arena/rig/cuda_memory.hpp"

#include <algorithm>

#include "runtime/driver.hpp"

namespace thresher::arena {
namespace {

constexpr std::size_t reserve_bytes = std::size_t{1} << 30;

}  // namespace

void* CudaMemory::allocate(std::size_t bytes) {
  runtime::DeviceBuffer buffer(ordinal_, std::max<std::size_t>(bytes, 1), "the arena's data");
  void* const data = buffer.data();
  const std::lock_guard lock(mutex_);
  buffers_.emplace(data, std::move(buffer));
  return data;
}

void CudaMemory::release(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  buffers_.erase(memory);
}

void CudaMemory::fill(void* to, std::uint8_t byte, std::size_t bytes) {
  runtime::fill_async(to, byte, bytes, Stream{}, ordinal_);
  runtime::synchronize_device(ordinal_);
}

void CudaMemory::upload(void* to, const void* from_host, std::size_t bytes) {
  runtime::copy(to, from_host, bytes, ordinal_);
}

void CudaMemory::download(void* to_host, const void* from, std::size_t bytes) {
  runtime::copy(to_host, from, bytes, ordinal_);
}

std::size_t CudaMemory::available_bytes() {
  const std::size_t free_bytes = runtime::memory_info(ordinal_).free_bytes;
  return free_bytes > reserve_bytes ? free_bytes - reserve_bytes : 0;
}

}  // namespace thresher::arena
