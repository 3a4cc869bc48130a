#pragma once
/// The invariants at the end of a block or a cluster.
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/launch_shape.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

/// When the last thread of a block ends, none of its own asynchronous work may be in flight, nor accesses of others to
/// its shared memory. Where the next grid relies on this one's wait, some thread has waited.
void check_block_end(const LaunchShape& shape, const Cluster& cluster, const Block& block, const Ordering& ordering,
                     const Words& words, Findings& findings);
/// When a cluster ends, none of its barriers awaits bytes.
void check_cluster_end(const Cluster& cluster, const Words& words, Findings& findings);

}  // namespace thresher::emulator
