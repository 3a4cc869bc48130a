#include "planner/combine.hpp"

#include <algorithm>
#include <array>

namespace thresher::planner {

std::string_view name(Bound bound) noexcept {
  switch (bound) {
    case Bound::matrix: return "the tensor cores";
    case Bound::memory: return "memory";
    case Bound::l2: return "L2 to shared memory";
    case Bound::dram: return "DRAM";
    case Bound::shared: return "shared memory";
    case Bound::issue: return "instruction issue";
    case Bound::waves: return "idle multiprocessors";
    case Bound::launch: return "launch and first loads";
  }
  return "?";
}

Combined combine(const Loads& loads, double loss) noexcept {
  std::array<Combined, 4> sorted{{{loads.matrix, Bound::matrix},
                                  {loads.shared, Bound::shared},
                                  {loads.issue, Bound::issue},
                                  {loads.memory, Bound::memory}}};
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Combined& a, const Combined& b) { return a.clocks > b.clocks; });
  return {sorted[0].clocks + loss * sorted[1].clocks, sorted[0].bound};
}

}  // namespace thresher::planner
