#pragma once
/// Asynchronous work of the hardware: issued now, completed when the schedule says.
#include <deque>
#include <memory>
#include <vector>

#include "machine/emulator/engine/schedule.hpp"

namespace thresher::emulator {

class AsyncWork {
 public:
  AsyncWork() = default;
  AsyncWork(const AsyncWork&) = delete;
  AsyncWork& operator=(const AsyncWork&) = delete;
  virtual ~AsyncWork() = default;
  /// Moves the data, then notifies the waiting threads.
  virtual void complete() = 0;
};

/// Work that completes in the order of issue.
using AsyncQueue = std::deque<std::unique_ptr<AsyncWork>>;

class AsyncEngine {
 public:
  void reset(Order order, Random& random);
  /// Without a queue the work may complete before and after any other.
  void submit(std::unique_ptr<AsyncWork> work, AsyncQueue* queue = nullptr);
  [[nodiscard]] bool empty() const { return loose_.empty() && queues_.empty(); }
  /// Whether a completion should come before the next step of a thread.
  [[nodiscard]] bool eager(Random& random) const { return !empty() && random.once_in(complete_once_in_); }
  void complete_one(Random& random);
  /// Discards all remaining work.
  void clear();

 private:
  Order order_ = Order::earliest;
  std::uint32_t complete_once_in_ = 0;
  std::vector<std::unique_ptr<AsyncWork>> loose_;
  std::vector<AsyncQueue*> queues_;  // those with work
};

}  // namespace thresher::emulator
