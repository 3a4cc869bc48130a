#pragma once
/// Who must make the same hand-overs of registers. What the pool holds is the matter of registers::increase.
///
/// setmaxnreg is a warpgroup's: its warps make the same ones in the same order. And code is compiled for one number of
/// registers: warpgroups that run the same multiply were handed over to the same number.
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

/// A sentence for each warpgroup of the block whose warps did not all make the same hand-overs.
[[nodiscard]] std::vector<std::string> unequal_hand_overs(const Cluster& cluster, const Block& block,
                                                          const Words& words);

/// All of `group` has issued its first multiply, in line `site`.
void check_hand_over_before_product(Warpgroup& group, std::uint32_t site, const Words& words, Findings& findings);

}  // namespace thresher::emulator
