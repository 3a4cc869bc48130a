#pragma once
/// Checks that register reallocations (`setmaxnreg`) agree. registers::increase checks the size of the pool.
///
/// setmaxnreg applies to a warpgroup: its warps must execute the same ones in the same order. Code is compiled for one
/// number of registers: warpgroups that run the same multiply must have been reallocated to the same number.
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

/// A sentence for each warpgroup of the block whose warps did not all make the same reallocations.
[[nodiscard]] std::vector<std::string> unequal_hand_overs(const Cluster& cluster, const Block& block,
                                                          const Words& words);

/// To be called when all of `group` have issued its first multiply, in line `site`.
void check_hand_over_before_product(Warpgroup& group, std::uint32_t site, const Words& words, Findings& findings);

}  // namespace thresher::emulator
