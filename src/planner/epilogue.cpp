#include "planner/epilogue.hpp"

#include <algorithm>

namespace thresher::planner {
namespace {

constexpr double store_bytes_per_clock = 24;  ///< by threads
constexpr double copy_engine_bytes_per_clock = 48;
constexpr double copy_engine_latency_clocks = 300;

}  // namespace

double epilogue_clocks(const strategies::EpilogueWork& work, const DeviceSpec& device,
                       const Calibration& calibration) noexcept {
  if (work.clocks > 0) {
    return work.clocks;
  }
  const double issue = work.instructions / calibration.issue_efficiency;
  const double special = work.specials / device.special_per_clock;
  const double store = work.tma_stores ? work.store_bytes / copy_engine_bytes_per_clock + copy_engine_latency_clocks
                                       : work.store_bytes / store_bytes_per_clock;
  return std::max(issue, special) + store;
}

}  // namespace thresher::planner
