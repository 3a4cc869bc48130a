#pragma once
/// The owners of tensor memory columns on the multiprocessors that a cluster runs on, and the waiting threads.
///
/// The schedule chooses what a kernel cannot know. Two blocks of a cluster may share a multiprocessor that has space
/// for both (the blocks of a pair never do). A block of another launch may hold columns there when the cluster starts.
/// It frees them when the schedule says, independent of the cluster.
#include <cstdint>
#include <optional>

#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {

/// The first of `columns` columns, at a multiple of their number, that now belong to the block; in a pair, to both
/// blocks. Empty while the multiprocessor has too few, or another block on it has not given up allocation.
[[nodiscard]] std::optional<std::uint32_t> take_columns(Engine& engine, Block& block, std::uint32_t columns, bool pair);
/// Suspends the thread until a block frees columns, or gives up allocation.
void wait_for_columns(Engine& engine, Thread& thread, std::uint32_t columns, std::uint32_t site);
void give_back_columns(Engine& engine, const Block& block, std::uint32_t first);
/// Lets another block on the multiprocessor allocate. Also for a block that has ended.
void give_up_allocation(Engine& engine, const Block& block);

}  // namespace thresher::emulator
