#include "machine/emulator/engine/block_end.hpp"

#include "machine/emulator/engine/hand_over.hpp"

namespace thresher::emulator {

void check_block_end(const LaunchShape& shape, const Cluster& cluster, const Block& block, const Ordering& ordering,
                     const Words& words, Findings& findings) {
  VectorClock known;
  VectorClock over;  // known, or executed before a cluster barrier: no longer in flight
  for (std::uint32_t t = 0; t < block.threads; ++t) {
    const Thread& thread = *cluster.threads[block.first_thread + t];
    known.join(thread.knowledge.seen);
    if (thread.executed != nullptr) {
      over.join(*thread.executed);
    }
  }
  over.join(known);
  if (shape.releases_after_wait && known.at(ordering.earlier_grid()) == 0 &&
      findings.first_time(FindingKind::earlier_grid, 0, 0)) {
    findings.report(FindingKind::earlier_grid,
                    words.of(block) +
                        " ended: launch::wait_for_earlier_grids did not come before, and the next grid "
                        "relies on it");
  }
  for (const std::string& sentence : unequal_hand_overs(cluster, block, words)) {
    findings.report(FindingKind::divergent, sentence);
  }
  const auto unfinished = [&](const std::string& what) {
    findings.report(FindingKind::unfinished_work, words.of(block) + " ended while " + what);
  };
  for (const auto& group : block.groups) {
    if (group.lane != 0 && (known.at(group.lane) < group.groups.closed() ||
                            group.groups.issued > group.groups.needed(group.groups.closed()))) {
      unfinished(words.of(group) + " had multiplies that no wgmma::wait retired");
    }
  }
  for (std::uint32_t t = 0; t < block.threads; ++t) {
    const Thread& thread = *cluster.threads[block.first_thread + t];
    if (thread.stores && (thread.stores->groups.issued > thread.stores->groups.needed(thread.stores->groups.closed()) ||
                          thread.stores->waited < thread.stores->groups.closed())) {
      unfinished("TMA stores of " + words.of(thread) + " may still read its shared memory: no tma::wait_read<0>");
    }
    if (thread.tensor_pipe && known.at(thread.tensor_pipe->lane) < thread.tensor_pipe->issued) {
      unfinished("tcgen05 of " + words.of(thread) + words.at(thread.tensor_pipe->last_site) +
                 " was under way: nobody waited for a commit behind it");
    }
    if (thread.copies && (thread.copies->groups.issued > thread.copies->groups.done)) {
      unfinished("asynchronous copies of " + words.of(thread) + " still write its shared memory");
    }
  }
  if (block.tensor_memory) {
    for (const TensorAllocation& kept : block.tensor_memory->allocations) {
      findings.report(FindingKind::tensor_allocation, words.of(block) + " ended with " + std::to_string(kept.columns) +
                                                          " columns of tensor memory that were allocated" +
                                                          words.at(kept.site) +
                                                          " and never given back: the next launch waits for them");
    }
  }
  for (const auto& [offset, barrier] : block.barriers) {
    if (barrier->in_flight_bytes != 0) {
      unfinished(words.of_flight(*barrier) + ", on " + words.of(*barrier));
    } else if (barrier->bytes > 0 && barrier->pending == barrier->expected) {
      unfinished("bytes announced on " + words.of(*barrier) + " had not arrived");
    } else if (known.at(barrier->lane) < barrier->phase && barrier->in_flight_site != 0) {
      unfinished("nobody had waited for the copies of " + words.of(*barrier) + "; " +
                 words.at(barrier->in_flight_site));
    }
  }
  if (block.last_remote.kind != AccessKind::none) {
    for (Lane lane = 0; lane < ordering.lanes(); ++lane) {
      if (block.remote_uses.at(lane) > over.at(lane)) {
        Access use = block.last_remote;
        use.lane = lane;
        use.clock = block.remote_uses.at(lane);
        findings.report(
            FindingKind::left_cluster_early,
            words.of(block) + " ended while another block may still use its shared memory: " + words.of(use),
            {"order it behind: a cluster barrier, or a wait for the barrier that the access completes on"});
        break;
      }
    }
  }
}

void check_cluster_end(const Cluster& cluster, const Words& words, Findings& findings) {
  for (const auto& block : cluster.blocks) {
    for (const auto& [offset, barrier] : block->barriers) {
      if (barrier->bytes != 0) {
        findings.report(FindingKind::byte_count,
                        "the kernel ended while " + words.of(*barrier) + " still awaits bytes");
      }
    }
  }
}

}  // namespace thresher::emulator
