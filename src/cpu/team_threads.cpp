#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "cpu/team.hpp"

namespace thresher::cpu {
namespace {

using Body = void (*)(void* shared, int thread);

/// Threads that sleep between the regions they help with. One region has them at a time.
class Helpers {
 public:
  /// False, with nothing done, where another region has the helpers.
  bool run(int threads, Body body, void* shared) {
    const std::unique_lock region(region_, std::try_to_lock);
    if (!region.owns_lock()) {
      return false;
    }
    {
      const std::lock_guard lock(mutex_);
      hire(threads - 1);
      body_ = body;
      shared_ = shared;
      next_thread_ = 1;
      unclaimed_ = running_ = std::min(threads - 1, hired_);
    }
    wake_.notify_all();
    body(shared, 0);
    std::unique_lock lock(mutex_);
    running_ -= unclaimed_;  // who has not begun is not needed any more
    unclaimed_ = 0;
    done_.wait(lock, [&] { return running_ == 0; });
    return true;
  }

 private:
  void hire(int wanted) {
    try {
      for (; hired_ < wanted; ++hired_) {
        std::thread([this] { help(); }).detach();
      }
    } catch (const std::system_error&) {  // as many as the system gives
    }
  }

  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return unclaimed_ > 0; });
      --unclaimed_;
      const int thread = next_thread_++;
      const Body body = body_;
      void* const shared = shared_;
      lock.unlock();
      body(shared, thread);
      lock.lock();
      if (--running_ == 0) {
        done_.notify_one();
      }
    }
  }

  std::mutex region_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  Body body_ = nullptr;
  void* shared_ = nullptr;
  int hired_ = 0;
  int next_thread_ = 0;
  int unclaimed_ = 0;
  int running_ = 0;
};

/// Never destroyed: helpers sleep in it until the process ends.
Helpers* helpers = nullptr;

void make_helpers() { helpers = new Helpers; }

Helpers& all_helpers() {
  // A forked child has none of its parent's threads, and locks as they were at that moment: it starts anew.
  [[maybe_unused]] static const bool made = [] {
    make_helpers();
    ::pthread_atfork(nullptr, nullptr, &make_helpers);
    return true;
  }();
  return *helpers;
}

/// The first number of OMP_NUM_THREADS, by which users limit every library alike; 0 where there is none.
int threads_asked_for() {
  const char* const value = std::getenv("OMP_NUM_THREADS");
  const std::string_view text = value == nullptr ? "" : value;
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

int usual_threads() {
  const int asked_for = threads_asked_for();
  return asked_for > 0 ? asked_for : static_cast<int>(std::thread::hardware_concurrency());
}

void run_team(int threads, Body body, void* shared) {
  if (!all_helpers().run(threads, body, shared)) {
    body(shared, 0);
  }
}

}  // namespace thresher::cpu
