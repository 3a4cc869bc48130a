#include "machine/emulator/engine/sites.hpp"

namespace thresher::emulator {

std::uint32_t Sites::number_by_key(std::uint64_t key, Site site) {
  const auto [entry, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back(site);
  }
  return entry->second;
}

}  // namespace thresher::emulator
