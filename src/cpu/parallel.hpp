#pragma once
/// Parallel loops of the CPU backend.
#include <cstdint>

namespace thresher::cpu {

/// `requested`, or the usual number of threads when it is 0.
[[nodiscard]] int resolve_threads(int requested);

namespace detail {
using Body = void (*)(const void* context, std::int64_t index, int thread);
void parallel_for(int threads, std::int64_t count, Body body, const void* context);
}  // namespace detail

/// Calls body(index, thread) once for each index in [0, count), thread in [0, threads); the assignment of indices to
/// threads is not determined. Returns when all are done. Rethrows the first exception of a body. Every body runs in the
/// default floating-point environment: rounding to nearest, subnormals kept.
template <typename Function>
void parallel_for(int threads, std::int64_t count, const Function& body) {
  detail::parallel_for(
      threads, count,
      [](const void* context, std::int64_t index, int thread) {
        (*static_cast<const Function*>(context))(index, thread);
      },
      &body);
}

/// While it lives, oneDNN primitives created by this thread are made for `threads` threads.
class OneDnnThreads {
 public:
  explicit OneDnnThreads(int threads);
  OneDnnThreads(const OneDnnThreads&) = delete;
  OneDnnThreads& operator=(const OneDnnThreads&) = delete;
  ~OneDnnThreads();

 private:
  int previous_;
};

}  // namespace thresher::cpu
