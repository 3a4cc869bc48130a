#include "cpu/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <exception>

#include "cpu/team.hpp"

#if defined(__SANITIZE_THREAD__)
#define THRESHER_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THRESHER_THREAD_SANITIZER
#endif
#endif

namespace thresher::cpu {
namespace {

/// ThreadSanitizer does not see the synchronisation inside the OpenMP runtime; these functions mark it.
#if defined(THRESHER_THREAD_SANITIZER)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
void acquire(void* address) { __tsan_acquire(address); }
void release(void* address) { __tsan_release(address); }
#else
void acquire(void*) {}
void release(void*) {}
#endif

class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() {
    std::fegetenv(&previous_);
    std::fesetenv(FE_DFL_ENV);
  }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;
  ~DefaultFloatingPoint() { std::fesetenv(&previous_); }

 private:
  std::fenv_t previous_{};
};

/// One parallel_for: lives on the caller's stack and outlives the team's work on it.
struct Loop {
  std::int64_t count;
  detail::Body body;
  const void* context;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure{};

  void work(int thread) {
    acquire(this);
    try {
      const DefaultFloatingPoint environment;
      for (std::int64_t index = next++; index < count; index = next++) {
        body(context, index, thread);
      }
    } catch (...) {
      next = count;
      if (!failed.exchange(true)) {
        failure = std::current_exception();
      }
    }
    release(this);
  }
};

/// The limit for the environment's number, as for the knob `threads`.
constexpr int max_threads = 1024;

}  // namespace

int resolve_threads(int requested) { return requested > 0 ? requested : std::clamp(usual_threads(), 1, max_threads); }

void detail::parallel_for(int threads, std::int64_t count, Body body, const void* context) {
  Loop loop{.count = count, .body = body, .context = context};
  const int team = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (team > 1) {
    release(&loop);
    run_team(team, [](void* shared, int thread) { static_cast<Loop*>(shared)->work(thread); }, &loop);
    acquire(&loop);
  } else {
    loop.work(0);
  }
  if (loop.failed) {
    std::rethrow_exception(loop.failure);
  }
}

}  // namespace thresher::cpu
