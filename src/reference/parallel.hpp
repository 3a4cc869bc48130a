#pragma once
/// Plain threads for the reference, which must not depend on the code that it checks.
#include <cstdint>
#include <functional>

namespace thresher::reference {

/// Calls body(index) once for each index in [0, count), on `threads` threads (0: one per processor). Rethrows the first
/// exception after all threads have stopped.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}  // namespace thresher::reference
