#pragma once
/// The threads behind parallel_for, from one of two libraries that a program is linked with. OpenMP is the runtime that
/// oneDNN uses, so that both share one team (team_openmp.cpp). The other is the C++ library (team_threads.cpp).

namespace thresher::cpu {

/// The number of threads that the environment requests.
[[nodiscard]] int usual_threads();

/// Calls body(shared, thread) in up to `threads` threads at once, including the caller's, each with another `thread` in
/// [0, threads). Returns when all have returned. `body` does not throw.
void run_team(int threads, void (*body)(void* shared, int thread), void* shared);

}  // namespace thresher::cpu
