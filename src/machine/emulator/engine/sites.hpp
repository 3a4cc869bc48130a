#pragma once
/// Lines of the kernel's source, numbered in the order of their first use by the launch.
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "machine/types.hpp"

namespace thresher::emulator {

using machine::Site;

class Sites {
 public:
  std::uint32_t number(Site site) {
    const std::uint64_t key =
        reinterpret_cast<std::uintptr_t>(site.file) * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(site.line);
    Recent& recent = recent_[(key ^ key >> 32) % std::tuple_size_v<decltype(recent_)>];
    if (recent.key != key) {
      recent = {key, number_by_key(key, site)};
    }
    return recent.number;
  }
  [[nodiscard]] const Site& at(std::uint32_t number) const { return sites_[number]; }

 private:
  std::uint32_t number_by_key(std::uint64_t key, Site site);

  struct Recent {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };
  std::vector<Site> sites_{Site{}};  // 0: no line of the kernel
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::array<Recent, 256> recent_{};
};

}  // namespace thresher::emulator
