#pragma once
/// The threads behind parallel_for, by one of two libraries that a program is linked with: OpenMP, the runtime that
/// oneDNN is built on, so that both share one team (team_openmp.cpp), or the C++ library's (team_threads.cpp).

namespace thresher::cpu {

/// How many threads the environment asks for.
[[nodiscard]] int usual_threads();

/// Calls body(shared, thread) in up to `threads` threads at once, the caller's among them, each with another `thread`
/// in [0, threads); returns when all have returned. `body` does not throw.
void run_team(int threads, void (*body)(void* shared, int thread), void* shared);

}  // namespace thresher::cpu
