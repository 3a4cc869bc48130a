#pragma once
/// Who waits for what, when nobody can go on.
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

void report_deadlock(const Cluster& cluster, const Words& words, Findings& findings);
/// Which threads of a warpgroup have not issued the multiply that the others have; false when there is none such.
bool describe_partial_product(const Cluster& cluster, const Warpgroup& group, const Words& words,
                              std::vector<std::string>& details);

}  // namespace thresher::emulator
