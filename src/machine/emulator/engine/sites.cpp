#include "machine/emulator/engine/sites.hpp"

namespace thresher::emulator {

std::uint32_t Sites::number(Site site) {
  const auto file = reinterpret_cast<std::uintptr_t>(site.file);
  const std::uint64_t key = file * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(site.line);
  Recent& recent = recent_[(key ^ key >> 32) % recent_.size()];
  if (recent.key == key) {
    return recent.number;
  }
  const auto [entry, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back(site);
  }
  recent = {key, entry->second};
  return entry->second;
}

}  // namespace thresher::emulator
