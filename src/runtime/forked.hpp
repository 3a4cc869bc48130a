#pragma once
/// What a child that was forked and goes on as it is does first: only calls that are safe between fork and exec.
#include <span>

namespace thresher::runtime {

/// `kept` rises.
void close_all_but(std::span<const int> kept) noexcept;

/// Signals do what they do in a process that has not said otherwise.
void default_signals() noexcept;

/// Nothing that ends a terminal's programs, or this one's group, ends the caller.
void leave_session_and_block_signals() noexcept;

}  // namespace thresher::runtime
