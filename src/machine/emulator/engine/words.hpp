#pragma once
/// The words of findings: agent, action and place.
#include <string>
#include <vector>

#include "machine/emulator/engine/global_memory.hpp"
#include "machine/emulator/engine/ordering.hpp"
#include "machine/emulator/engine/sites.hpp"

namespace thresher::emulator {

class Words {
 public:
  Words(const Sites& sites, const Ordering& ordering, const Cluster& cluster)
      : sites_(sites), ordering_(ordering), cluster_(cluster) {}

  /// " at src/…/file.hpp:12"; empty for no line.
  [[nodiscard]] std::string at(std::uint32_t site_number) const;
  [[nodiscard]] std::string of(const Thread& thread) const;
  [[nodiscard]] std::string of(const Block& block) const;
  [[nodiscard]] std::string of(const Mbarrier& barrier) const;
  [[nodiscard]] std::string of(const Warpgroup& group) const;
  [[nodiscard]] std::string of(const Access& access) const;
  [[nodiscard]] std::string of(const Wait& wait) const;
  /// "threads 0-31,64 (load[0]) of block (0,0,0)", one clause per block and role.
  [[nodiscard]] std::string of(const std::vector<const Thread*>& threads) const;
  /// "a multicast into its shared memory was in flight: …": the last copy announced on a barrier.
  [[nodiscard]] std::string of_flight(const Mbarrier& barrier) const;
  [[nodiscard]] std::string of_shared(const Block& block, std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] static std::string of_global(const GlobalMemory::Buffer& buffer, std::uint64_t offset,
                                             std::uint64_t bytes);
  /// " by thread 3 of block (0,0,0)" for the running thread; empty while asynchronous work completes.
  [[nodiscard]] std::string by_current() const;

 private:
  [[nodiscard]] std::string of_holders(const Block& block) const;

  const Sites& sites_;
  const Ordering& ordering_;
  const Cluster& cluster_;
};

}  // namespace thresher::emulator
