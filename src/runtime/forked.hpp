#pragma once
/// The first steps of a forked child that does not exec: only calls that are safe between fork and exec.
#include <span>

namespace thresher::runtime {

/// `kept` must be ascending.
void close_all_but(std::span<const int> kept) noexcept;

/// Resets all signals to their default actions.
void default_signals() noexcept;

/// Signals to a terminal's programs, or to this process group, do not end the caller.
void leave_session_and_block_signals() noexcept;

}  // namespace thresher::runtime
