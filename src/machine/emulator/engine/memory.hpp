#pragma once
/// The bytes that kernels access: their owner, and whether an access is allowed now.
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

struct GlobalBuffer {
  const GlobalMemory::Buffer* buffer;
  std::unique_ptr<Shadow> shadow;  // null for inputs
};

/// A shared address is the block's rank in the cluster (8 bits) and an offset (24).
class Memory final : private ConflictSink {
 public:
  Memory(const LaunchShape& shape, const GlobalMemory& global, const Cluster& cluster, const Ordering& ordering,
         const Words& words, Findings& findings);

  [[nodiscard]] Block& block_of(std::uint32_t address) const;
  /// The bytes at `address`, checked for range and alignment; a failed check is fatal and returns null.
  std::uint8_t* shared_bytes(std::uint32_t address, std::uint64_t bytes, std::uint32_t alignment, const char* call,
                             std::uint32_t site_number);
  void check_shared(Block& block, std::uint64_t offset, std::uint64_t bytes, const Observer& observer);
  /// The buffer that holds the bytes at `address`, checked likewise.
  GlobalBuffer* global_buffer(std::uint64_t address, std::uint64_t bytes, std::uint32_t alignment, const char* call,
                              std::uint32_t site_number);
  void check_global(GlobalBuffer& buffer, std::uint64_t address, std::uint64_t bytes, const Observer& observer);

  /// Records that another block's agent uses `target`'s shared memory.
  static void note_remote(Block& target, const Access& use);
  /// `thread` may access `target`: the block has started, as the thread knows, and has not ended.
  void require_started(const Thread& thread, const Block& target, const char* call, std::uint32_t site_number);

 private:
  void conflict(const Conflict& found) override;
  [[nodiscard]] bool ordered_across_clusters(const Access& earlier, const VectorClock& seen) const override {
    return ordering_.ordered_across_clusters(earlier, seen);
  }

  const LaunchShape& shape_;
  const Cluster& cluster_;
  const Ordering& ordering_;
  const Words& words_;
  Findings& findings_;
  std::vector<GlobalBuffer> buffers_;  // by address
  std::size_t last_buffer_ = 0;
  Block* checked_block_ = nullptr;  // the block whose conflicts are being reported
  GlobalBuffer* checked_buffer_ = nullptr;
};

}  // namespace thresher::emulator
