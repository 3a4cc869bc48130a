#pragma once
/// The groups of a launch as its kernels receive them, and the shared memory of their directory.
#include "machine/global.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

inline constexpr u32 max_groups = 1024;

/// Part of the kernel's parameter.
struct Groups {
  Global<i32> bounds;    ///< packed: offsets [count + 1]; slots: counts [count]; null: one group owns all rows
  u32 count = 0;         ///< 1 … max_groups
  u32 rows = 0;          ///< packed: of all groups together; slots: of one
  u32 slots = 0;         ///< 1 for slots
  u32 column_tiles = 0;  ///< per row tile
  u32 settled = 0;       ///< 1 when bounds are read before the kernel waits for earlier grids
};

/// Invalid bounds, which were clamped so that groups do not overlap and stay inside.
enum GroupFlag : u32 { bounds_decrease = 1, bounds_negative = 2, bounds_beyond = 4 };

/// An index into shared memory for which lanes that are a power of two apart access different banks.
TH_DEVICE constexpr u32 padded_word(u32 index) { return index + index / 32; }
/// For one array with one element more than there are groups.
TH_DEVICE constexpr u32 directory_array_words(u32 groups) { return padded_word(groups) + 1; }
/// Up to this many groups are sorted; each then has three words beside its first tile.
inline constexpr u32 max_sorted_groups = 32;
TH_DEVICE constexpr u32 directory_bytes(u32 groups) {
  const u32 words = groups <= max_sorted_groups ? directory_array_words(max_sorted_groups) + 3 * max_sorted_groups
                                                : 2 * directory_array_words(groups);
  return (words * 4 + 15) / 16 * 16;
}

/// It follows all parts that a Shape knows.
TH_DEVICE constexpr int directory_offset(const Shape& shape) { return (shared_bytes(shape) + 15) / 16 * 16; }
TH_DEVICE constexpr int grouped_shared_bytes(const Shape& shape, u32 groups) {
  return directory_offset(shape) + static_cast<int>(directory_bytes(groups));
}

}  // namespace thresher::pipeline
