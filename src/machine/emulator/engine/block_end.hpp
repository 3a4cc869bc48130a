#pragma once
/// What must hold when a block or a cluster ends.
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

/// When the last thread of a block ends, nothing that it started, and nothing that others do to its shared memory, is
/// still under way.
void check_block_end(const Cluster& cluster, const Block& block, const Ordering& ordering, const Words& words,
                     Findings& findings);
/// When a cluster ends, none of its barriers awaits bytes.
void check_cluster_end(const Cluster& cluster, const Words& words, Findings& findings);

}  // namespace thresher::emulator
