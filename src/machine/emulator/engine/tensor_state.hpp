#pragma once
/// The state of a block's tensor memory while a kernel runs. Plain data, as in state.hpp.
#include <cstdint>
#include <vector>

#include "machine/emulator/engine/async.hpp"
#include "machine/emulator/engine/clock.hpp"

namespace thresher::emulator {

struct Block;
struct Thread;

/// The accesses to a cell of tensor memory.
struct TensorUse {
  enum class What : std::uint8_t { nothing, allocation, load, product, scales_of_a_product, copy };
  What what = What::nothing;
  std::uint8_t agents = 1;  ///< from `lane` on: a warp's loads have 32
  Lane lane = 0;
  std::uint32_t clock = 0;
  std::uint32_t site = 0;
  std::uint64_t shape = 0;         ///< of a product: the position of its accumulators, its rows and columns
  const Thread* thread = nullptr;  ///< that issued it
  std::uint32_t thread_clock = 0;  ///< its own clock at that time
};

/// The two halves of a quarter, 16 lanes each, as bits.
inline constexpr std::uint8_t lower_slab = 1;
inline constexpr std::uint8_t upper_slab = 2;
inline constexpr std::uint8_t both_slabs = lower_slab | upper_slab;

/// One column of one quarter of the lanes.
struct TensorCell {
  TensorUse write;         ///< empty if it is not allocated
  std::uint8_t slabs = 0;  ///< initialized ones
  std::vector<TensorUse> reads;
};

struct TensorAllocation {
  std::uint32_t first = 0;
  std::uint32_t columns = 0;
  std::uint32_t at = 0;  ///< the offset in shared memory that received its address
  std::uint32_t site = 0;
};

struct TensorMemory {
  std::vector<std::uint32_t> words;           ///< [lane][column]
  std::vector<TensorCell> cells;              ///< [quarter][column]
  std::vector<TensorAllocation> allocations;  ///< not freed yet
  std::vector<TensorAllocation> history;      ///< all, in order
  bool gave_up = false;
};

/// Columns of a multiprocessor that a block holds; it may be of another launch.
struct HeldColumns {
  const Block* block = nullptr;  ///< null: a block of another launch
  std::uint32_t first = 0;
  std::uint32_t columns = 0;
};

/// The state of a multiprocessor's tensor memory.
struct Multiprocessor {
  std::vector<HeldColumns> held;
  const Block* allocating = nullptr;  ///< the block that has allocated and not given that up: no other one may
};

/// The asynchronous instructions of tcgen05 that one thread issues.
struct TensorPipe {
  Lane lane = 0;
  std::uint32_t issued = 0;  ///< its clock
  std::uint32_t last_site = 0;
  AsyncQueue queue;
};

}  // namespace thresher::emulator
