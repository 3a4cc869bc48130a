#include "reference/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace thresher::reference {

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  const std::int64_t wanted = threads > 0 ? threads : static_cast<std::int64_t>(std::thread::hardware_concurrency());
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (std::int64_t index = next++; index < count; index = next++) {
        body(index);
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(failure_mutex);
      failure = failure ? failure : std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::int64_t helper = 1; helper < std::min(wanted, count); ++helper) {
      helpers.emplace_back(work);
    }
    work();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace thresher::reference
