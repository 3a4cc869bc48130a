#pragma once
/// The groups of a launch as its kernels are given them, and what shared memory their directory takes.
#include "machine/global.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

inline constexpr u32 max_groups = 1024;

/// Part of the kernel's parameter.
struct Groups {
  Global<i32> bounds;    ///< packed: offsets [count + 1]; slots: counts [count]; null: the one group owns all rows
  u32 count = 0;         ///< 1 … max_groups
  u32 rows = 0;          ///< packed: of all groups together; slots: of one
  u32 slots = 0;         ///< 1 for slots
  u32 column_tiles = 0;  ///< of each row tile
};

/// What was wrong with the bounds; they were limited so that groups lie apart and inside.
enum GroupFlag : u32 { bounds_decrease = 1, bounds_negative = 2, bounds_beyond = 4 };

/// Words of shared memory in which lanes that are a power of two apart meet in different banks.
TH_DEVICE constexpr u32 padded_word(u32 index) { return index + index / 32; }
/// Of one array with an element more than there are groups.
TH_DEVICE constexpr u32 directory_array_words(u32 groups) { return padded_word(groups) + 1; }
/// So few groups are sorted; each then has three words beside its first tile.
inline constexpr u32 max_sorted_groups = 32;
TH_DEVICE constexpr u32 directory_bytes(u32 groups) {
  const u32 words = groups <= max_sorted_groups ? directory_array_words(max_sorted_groups) + 3 * max_sorted_groups
                                                : 2 * directory_array_words(groups);
  return (words * 4 + 15) / 16 * 16;
}

/// It lies behind all that a Shape knows.
TH_DEVICE constexpr int directory_offset(const Shape& shape) { return (shared_bytes(shape) + 15) / 16 * 16; }
TH_DEVICE constexpr int grouped_shared_bytes(const Shape& shape, u32 groups) {
  return directory_offset(shape) + static_cast<int>(directory_bytes(groups));
}

}  // namespace thresher::pipeline
