#pragma once
/// Attention's kernels in the emulator: simple, pipelined, split.
#include "arena/emulation/emulation.hpp"
#include "ops/attention_choice.hpp"

namespace thresher::arena {

[[nodiscard]] const EmulatedOperation& emulated_attention();

/// The kernel that runs `problem` with that choice: which it is depends on the problem's format, head dimension, scale
/// and softcap too.
[[nodiscard]] std::shared_ptr<const EmulatedKernel> make_attention_emulation(const AttentionProblem& problem,
                                                                             const ops::AttentionChoice& choice);

}  // namespace thresher::arena
