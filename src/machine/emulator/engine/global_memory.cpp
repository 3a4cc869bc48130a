#include "machine/emulator/engine/global_memory.hpp"

#include <algorithm>
#include <utility>

#include "thresher/error.hpp"

namespace thresher::emulator {

void GlobalMemory::add(std::string name, const void* data, std::size_t bytes, Use use) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
  if (bytes == 0) {
    return;
  }
  const auto next = std::lower_bound(buffers_.begin(), buffers_.end(), address,
                                     [](const Buffer& buffer, std::uint64_t at) { return buffer.address < at; });
  const bool hits_next = next != buffers_.end() && address + bytes > next->address;
  const bool hits_previous = next != buffers_.begin() && (next - 1)->address + (next - 1)->bytes > address;
  if (hits_next || hits_previous) {
    throw Error(ErrorCode::invalid_argument, "Buffer '" + name + "' overlaps buffer '" +
                                                 (hits_next ? next->name : (next - 1)->name) +
                                                 "'; register each byte once");
  }
  buffers_.insert(next, Buffer{std::move(name), address, bytes, use});
}

}  // namespace thresher::emulator
