#pragma once
/// A kernel on many schedules.
#include <string>

#include "arena/emulation/emulation.hpp"

namespace thresher::arena {

struct [[nodiscard]] Examination {
  std::size_t runs = 0;
  /// Empty when nothing was found; else the words of the first finding, of the judge, or of the first result that
  /// differed.
  std::string finding;
  std::uint64_t seed = 0;  ///< of the schedule that showed it

  [[nodiscard]] bool clean() const { return finding.empty(); }
};

/// Runs `kernel` on `problem` once for each seed, to the first that finds something, writes what the definition does
/// not say, or writes other bytes than the first one did. The schedules of `options` are those of the seeds. Throws
/// Error as EmulatedKernel::on does.
Examination examine(const EmulatedKernel& kernel, const Problem& problem, std::span<const std::uint64_t> seeds,
                    emulator::Options options = {});

}  // namespace thresher::arena
