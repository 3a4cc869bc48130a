#pragma once
/// Accesses to columns of tensor memory, and whether they are ordered after earlier ones.
#include <cstdint>

#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {

inline constexpr std::uint32_t tensor_quarters = 4;
inline constexpr std::uint32_t tensor_lanes = 128;
inline constexpr std::uint32_t tensor_columns = 512;

enum class TensorTouch : std::uint8_t {
  load,
  sums,        ///< a product overwrites them
  added_sums,  ///< a product adds to them
  scales,      ///< a product reads them
  copy,
  give_back
};

/// An access about to be made, by the threads or the pipe that `self` names.
struct TensorObserver {
  TensorUse self;
  const VectorClock* seen;         ///< their knowledge
  const VectorClock* tensor_seen;  ///< their knowledge at their latest after_barrier
  const char* call;
};

/// Columns `first` to `first` + `columns`, of the quarters whose bits are set, and of their slabs.
struct TensorPlace {
  std::uint32_t quarters = (1U << tensor_quarters) - 1U;
  std::uint8_t slabs = both_slabs;
  std::uint32_t first = 0;
  std::uint32_t columns = 0;
};

/// Checks and records; false where the columns are not allocated, which is fatal.
bool touch_tensor_memory(Engine& engine, Block& block, const TensorPlace& place, TensorTouch touch,
                         const TensorObserver& observer);

/// All instructions of a kernel must use the same group size; a pair is two blocks of a cluster.
void check_tensor_group(Engine& engine, const Thread& thread, bool pair, const char* call, std::uint32_t site);

/// The blocks that an instruction of this thread works on: its own, or both of its pair, the even one first.
struct TensorBlocks {
  Block* of[2];
  std::uint32_t count;
};
[[nodiscard]] TensorBlocks tensor_blocks(Engine& engine, const Thread& thread, bool pair);

/// The lane of the first thread of a warp in tensor memory; those of the others follow.
[[nodiscard]] Lane tensor_lane(Engine& engine, Warp& warp);

}  // namespace thresher::emulator
