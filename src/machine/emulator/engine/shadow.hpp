#pragma once
/// The last writer and the readers of each byte of a memory, to check that later accesses are ordered after them.
///
/// State is kept per 16 bytes as long as accesses cover whole aligned 16-byte chunks, as copies and matrix operands do.
/// After finer accesses it is kept per 4 or 1 bytes. An ordered write of the whole chunk merges it again. No access
/// that a later one could conflict with is ever forgotten.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/emulator/engine/clock.hpp"

namespace thresher::emulator {

enum class AccessKind : std::uint8_t {
  none,
  read,         ///< by a thread
  write,        ///< by a thread
  atomic,       ///< by a thread; atomics do not conflict with each other
  atomic_read,  ///< by a thread; conflicts with plain writes only
  read_only,    ///< by a thread through the read-only path: conflicts with every write of the launch, ordered or not
  copy_write,   ///< by cp.async: asynchronous, but not in the asynchronous proxy
  async_read,   ///< by the TMA or a matrix product
  async_write,  ///< by the TMA
};

constexpr bool is_async(AccessKind kind) { return kind >= AccessKind::async_read; }
constexpr bool is_atomic(AccessKind kind) { return kind == AccessKind::atomic || kind == AccessKind::atomic_read; }
constexpr bool is_write(AccessKind kind) {
  return kind == AccessKind::write || kind == AccessKind::async_write || kind == AccessKind::atomic ||
         kind == AccessKind::copy_write;
}

/// The agent of an access, its time (the lane's clock), and the line of the kernel.
struct Access {
  std::uint32_t clock = 0;
  std::uint32_t site = 0;
  std::uint32_t cluster = 0;  ///< serial number in the launch: clocks of different clusters are not comparable
  Lane lane = 0;
  AccessKind kind = AccessKind::none;
};

enum class ConflictKind : std::uint8_t { unordered, not_fenced, uninitialised, barrier_bytes };

struct Conflict {
  ConflictKind kind;
  Access earlier;  ///< empty for uninitialised and barrier_bytes
  Access later;
  std::uint64_t offset;  ///< in the memory
  std::uint32_t bytes;
};

/// Receives a Shadow's conflicts, and answers questions on accesses of clusters that have ended.
class ConflictSink {
 public:
  virtual void conflict(const Conflict& found) = 0;
  [[nodiscard]] virtual bool ordered_across_clusters(const Access& earlier, const VectorClock& seen) const = 0;

 protected:
  ~ConflictSink() = default;
};

/// An access about to be made, and its agent's knowledge.
struct Observer {
  Access self;
  const VectorClock* seen;
  const VectorClock* fenced;  ///< for asynchronous accesses to shared memory; null where there is no fence
  bool checks_initialised = true;
};

class Shadow {
 public:
  explicit Shadow(std::uint64_t bytes = 0, bool initialised = false) { reset(bytes, initialised); }

  /// Clears all state; the memory then holds `bytes` bytes.
  void reset(std::uint64_t bytes, bool initialised);
  /// Checks and records one access. Offsets must be in range.
  void access(std::uint64_t offset, std::uint64_t bytes, const Observer& observer, ConflictSink& sink);
  /// Marks 8 aligned bytes as a live barrier, which only barrier operations may access, or as ordinary bytes again.
  void set_barrier(std::uint64_t offset, bool live);

 private:
  static constexpr std::uint32_t granule_bytes = 16;
  static constexpr std::uint32_t page_granules = 64;

  struct Cell {
    Access write;
    Access read;
    std::uint32_t more_reads = 0;  // index into read_lists_, 0: none
  };
  struct Granule {
    Cell whole;                 // when unit == 16
    std::uint32_t pieces = 0;   // index into pieces_, when unit < 16
    std::uint16_t written = 0;  // bit per byte
    std::uint8_t unit = granule_bytes;
    std::uint8_t barriers = 0;  // bit per 8 bytes
  };
  using Page = std::array<Granule, page_granules>;
  using Pieces = std::array<Cell, granule_bytes>;

  Granule& granule(std::uint64_t index);
  void access_granule(Granule& granule, std::uint64_t base, std::uint32_t first, std::uint32_t end,
                      const Observer& observer, ConflictSink& sink);
  void split(Granule& granule, std::uint8_t unit);
  void join(Granule& granule);
  void read(Cell& cell, const Observer& observer, std::uint64_t offset, std::uint32_t bytes, ConflictSink& sink);
  void write(Cell& cell, const Observer& observer, std::uint64_t offset, std::uint32_t bytes, ConflictSink& sink);
  void add_reader(Cell& cell, const Observer& observer, const ConflictSink& sink);
  void drop_readers(Cell& cell);

  bool initialised_ = false;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<std::unique_ptr<Page>> spare_pages_;
  std::vector<std::unique_ptr<Pieces>> pieces_;
  std::vector<std::uint32_t> free_pieces_;
  /// Readers of one cell except its latest. Those that a later one made redundant are removed when the list is tidied.
  /// The list's length decides when, so that adding one takes constant time on average.
  struct Readers {
    std::vector<Access> list;
    std::size_t tidy_at = 16;
  };
  std::vector<Readers> read_lists_;
  std::vector<std::uint32_t> free_read_lists_;
};

}  // namespace thresher::emulator
