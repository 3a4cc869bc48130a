#pragma once
/// Runs a kernel on many schedules.
#include <string>

#include "arena/emulation/emulation.hpp"

namespace thresher::arena {

struct [[nodiscard]] Examination {
  std::size_t runs = 0;
  /// Empty when nothing was found; else the first finding, the judge's sentence, or the first result that differed.
  std::string finding;
  std::uint64_t seed = 0;  ///< of the schedule that showed it

  [[nodiscard]] bool clean() const { return finding.empty(); }
};

/// Runs `kernel` on `problem` once per seed. Stops at the first finding, wrong output, or output that differs from the
/// first run's. The seeds replace the schedule of `options`. Throws Error as EmulatedKernel::on does.
Examination examine(const EmulatedKernel& kernel, const Problem& problem, std::span<const std::uint64_t> seeds,
                    emulator::Options options = {});

}  // namespace thresher::arena
