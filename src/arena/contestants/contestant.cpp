#include "arena/contestants/contestant.hpp"

#include <fmt/format.h>

namespace thresher::arena {

Answer fits_in_memory(const Problem& problem, double needed_bytes, Memory& memory) {
  const auto available_bytes = static_cast<double>(memory.available_bytes());
  constexpr double mib = 1 << 20;
  return {needed_bytes <= available_bytes,
          fmt::format("{} needs about {:.0f} MiB of memory, {:.0f} MiB are available", label(problem),
                      needed_bytes / mib, available_bytes / mib),
          MemoryNeed{needed_bytes, available_bytes}};
}

Answer compiled(const MachineCode& code, const std::string& by_whom) {
  if (code.kernels.empty()) {
    return {true, by_whom + "; " + code.not_judged};
  }
  const KernelCode& kernel = code.kernels.front();
  return {true, fmt::format("{} by {}: {}", kernel.title, kernel.toolchain, resources_text(kernel))};
}

}  // namespace thresher::arena
