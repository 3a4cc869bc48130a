#pragma once
/// Who holds columns of tensor memory on the multiprocessors that a cluster runs on, and who waits for some.
///
/// What a kernel cannot know, the schedule chooses: whether two blocks of a cluster share a multiprocessor that has
/// room for both (the blocks of a pair never do), and whether a stranger, a block of some other launch, holds columns
/// there when the cluster comes. A stranger gives them back when the schedule says, whatever the cluster does.
#include <cstdint>
#include <optional>

#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {

/// The first of so many columns, at a multiple of their number, that now are the block's, in a pair the same columns of
/// both blocks; none while the multiprocessor has too few, or another block on it has not given up allocation.
[[nodiscard]] std::optional<std::uint32_t> take_columns(Engine& engine, Block& block, std::uint32_t columns, bool pair);
/// Suspends the thread until somebody gives back columns, or allocation up.
void wait_for_columns(Engine& engine, Thread& thread, std::uint32_t columns, std::uint32_t site);
void give_back_columns(Engine& engine, const Block& block, std::uint32_t first);
/// Another block on the multiprocessor may allocate. For a block that has ended too.
void give_up_allocation(Engine& engine, const Block& block);

}  // namespace thresher::emulator
