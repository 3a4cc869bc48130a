#include "arena/rig/memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::uint8_t guard_byte = 0xA7;

std::size_t round_up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::optional<std::size_t> first_number(const char* path) {
  std::ifstream file(path);
  std::size_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::size_t free_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) {
      return std::stoull(line.substr(line.find(':') + 1)) * 1024;
    }
  }
  return static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// The remaining memory of a container; no limit where there is none ("max" is not a number).
std::size_t control_group_bytes() {
  const auto limit = first_number("/sys/fs/cgroup/memory.max");
  const auto used = first_number("/sys/fs/cgroup/memory.current");
  if (!limit || !used) {
    return std::numeric_limits<std::size_t>::max();
  }
  return *limit > *used ? *limit - *used : 0;
}

std::size_t address_space_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::size_t>::max();
  }
  return limit.rlim_cur / 2;
}

}  // namespace

void* HostMemory::allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(alignment, round_up(std::max<std::size_t>(bytes, 1)));
  if (memory == nullptr) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{} MiB of memory are not to be had: use a smaller problem or free some", bytes >> 20));
  }
  return memory;
}

void HostMemory::release(void* memory) noexcept { std::free(memory); }
void HostMemory::fill(void* to, std::uint8_t byte, std::size_t bytes) { std::memset(to, byte, bytes); }
void HostMemory::upload(void* to, const void* from_host, std::size_t bytes) {
  std::copy_n(static_cast<const std::byte*>(from_host), bytes, static_cast<std::byte*>(to));
}
void HostMemory::download(void* to_host, const void* from, std::size_t bytes) { upload(to_host, from, bytes); }

std::size_t HostMemory::available_bytes() {
  return std::min({free_memory_bytes(), control_group_bytes(), address_space_bytes()});
}

GuardedBuffer::GuardedBuffer(Memory& memory, std::size_t bytes)
    : memory_(&memory),
      base_(static_cast<std::byte*>(memory.allocate(zone_bytes(bytes) + bytes + zone_bytes(bytes)))),
      bytes_(bytes) {
  memory_->fill(base_, guard_byte, zone_bytes(bytes));
  memory_->fill(base_ + zone_bytes(bytes) + bytes, guard_byte, zone_bytes(bytes));
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : memory_(other.memory_), base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}

GuardedBuffer::~GuardedBuffer() {
  if (base_ != nullptr) {
    memory_->release(base_);
  }
}

std::optional<GuardDamage> GuardedBuffer::damage() const {
  const std::size_t length = zone_bytes(bytes_);
  std::vector<std::uint8_t> zone(length);
  const auto is_damaged = [](std::uint8_t byte) { return byte != guard_byte; };
  memory_->download(zone.data(), base_ + length + bytes_, length);
  if (const auto bytes = std::count_if(zone.begin(), zone.end(), is_damaged); bytes > 0) {
    const auto first = std::find_if(zone.begin(), zone.end(), is_damaged);
    return GuardDamage{true, static_cast<std::size_t>(first - zone.begin()) + 1, static_cast<std::size_t>(bytes)};
  }
  memory_->download(zone.data(), base_, length);
  if (const auto bytes = std::count_if(zone.begin(), zone.end(), is_damaged); bytes > 0) {
    const auto last = std::find_if(zone.rbegin(), zone.rend(), is_damaged);
    return GuardDamage{false, static_cast<std::size_t>(last - zone.rbegin()) + 1, static_cast<std::size_t>(bytes)};
  }
  return std::nullopt;
}

}  // namespace thresher::arena
