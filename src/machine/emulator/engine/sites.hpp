#pragma once
/// Lines of the kernel's source, numbered in the order in which the launch came to them.
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "machine/types.hpp"

namespace thresher::emulator {

using machine::Site;

class Sites {
 public:
  std::uint32_t number(Site site);
  [[nodiscard]] const Site& at(std::uint32_t number) const { return sites_[number]; }

 private:
  struct Recent {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };
  std::vector<Site> sites_{Site{}};  // 0: no line of the kernel's
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::array<Recent, 256> recent_{};
};

}  // namespace thresher::emulator
