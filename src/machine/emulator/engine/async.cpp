#include "machine/emulator/engine/async.hpp"

#include <utility>

namespace thresher::emulator {

void AsyncEngine::reset(Order order, Random& random) {
  clear();
  order_ = order;
  const std::uint32_t choices[] = {1, 8, 100, 2000};
  complete_once_in_ = order == Order::random ? choices[random.below(4)] : 0;
}

void AsyncEngine::submit(std::unique_ptr<AsyncWork> work, AsyncQueue* queue) {
  if (order_ == Order::earliest) {
    work->complete();
  } else if (queue == nullptr) {
    loose_.push_back(std::move(work));
  } else {
    if (queue->empty()) {
      queues_.push_back(queue);
    }
    queue->push_back(std::move(work));
  }
}

void AsyncEngine::complete_one(Random& random) {
  const std::size_t all = loose_.size() + queues_.size();
  std::size_t pick = order_ == Order::random ? random.below(static_cast<std::uint32_t>(all)) : all - 1;
  std::unique_ptr<AsyncWork> work;
  if (pick < loose_.size()) {
    std::swap(loose_[pick], loose_.back());
    work = std::move(loose_.back());
    loose_.pop_back();
  } else {
    pick -= loose_.size();
    AsyncQueue& queue = *queues_[pick];
    work = std::move(queue.front());
    queue.pop_front();
    if (queue.empty()) {
      std::swap(queues_[pick], queues_.back());
      queues_.pop_back();
    }
  }
  work->complete();
}

void AsyncEngine::clear() {
  loose_.clear();
  for (AsyncQueue* queue : queues_) {
    queue->clear();
  }
  queues_.clear();
}

}  // namespace thresher::emulator
