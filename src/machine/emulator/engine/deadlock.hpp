#pragma once
/// Describes which thread waits for what, when no thread can continue.
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

void report_deadlock(const Cluster& cluster, const Words& words, Findings& findings);
/// The threads of a warpgroup that have not issued the multiply of the others; false when there are none.
bool describe_partial_product(const Cluster& cluster, const Warpgroup& group, const Words& words,
                              std::vector<std::string>& details);

}  // namespace thresher::emulator
