#pragma once
/// mbarriers and the cluster's barrier: arrivals, bytes, phases.
#include <cstdint>

#include "machine/emulator/engine/memory.hpp"
#include "machine/emulator/engine/scheduler.hpp"

namespace thresher::emulator {

class Barriers {
 public:
  Barriers(Cluster& cluster, Memory& memory, const Words& words, Findings& findings, Scheduler& scheduler)
      : cluster_(cluster), memory_(memory), words_(words), findings_(findings), scheduler_(scheduler) {}

  /// The initialised barrier at `address`; fatal when there is none.
  Mbarrier& at(std::uint32_t address, const char* call, std::uint32_t site_number);
  /// A thread other than the initialising one must know of the init; the TMA and other blocks need its fence too.
  void check_published(const Thread& thread, const Mbarrier& barrier, bool needs_fence, const char* call,
                       std::uint32_t site_number);
  void arrive(Mbarrier& barrier, std::uint32_t count, const Thread& thread, const char* what,
              std::uint32_t site_number);
  void expect_bytes(Mbarrier& barrier, std::uint32_t bytes, std::uint32_t site_number);
  void complete_bytes(Mbarrier& barrier, std::uint64_t bytes);
  /// Completes the phase of the cluster's barrier, when a thread has arrived there or ended.
  void finish_cluster_phase_if_complete();

 private:
  void complete_phase_if_due(Mbarrier& barrier);

  Cluster& cluster_;
  Memory& memory_;
  const Words& words_;
  Findings& findings_;
  Scheduler& scheduler_;
};

}  // namespace thresher::emulator
