#include <pthread.h>
#include <semaphore.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "cpu/team.hpp"

namespace thresher::cpu {
namespace {

using Body = void (*)(void* shared, int thread);

class Semaphore {
 public:
  Semaphore() { ::sem_init(&semaphore_, 0, 0); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore() { ::sem_destroy(&semaphore_); }

  void release() { ::sem_post(&semaphore_); }
  void acquire() {
    while (::sem_wait(&semaphore_) != 0) {  // interrupted by a signal
    }
  }
  bool try_acquire() { return ::sem_trywait(&semaphore_) == 0; }

 private:
  sem_t semaphore_{};
};

/// Threads that sleep between the regions they help with. One region has them at a time.
class Helpers {
 public:
  /// Returns false, with nothing done, if another region has the helpers.
  bool run(int threads, Body body, void* shared) {
    const std::unique_lock region(region_, std::try_to_lock);
    if (!region.owns_lock()) {
      return false;
    }
    hire(threads - 1);
    body_ = body;
    shared_ = shared;
    next_thread_ = 1;
    int running = std::min(threads - 1, hired_);
    for (int i = 0; i < running; ++i) {
      begin_.release();
    }
    body(shared, 0);
    while (begin_.try_acquire()) {  // helpers that have not begun are not needed any more
      --running;
    }
    for (; running > 0; --running) {
      ended_.acquire();
    }
    return true;
  }

 private:
  void hire(int wanted) {
    try {
      for (; hired_ < wanted; ++hired_) {
        std::thread([this] { help(); }).detach();
      }
    } catch (const std::system_error&) {  // continue with as many as the system gives
    }
  }

  [[noreturn]] void help() {
    for (;;) {
      begin_.acquire();
      body_(shared_, next_thread_++);
      ended_.release();
    }
  }

  std::mutex region_;
  Semaphore begin_;
  Semaphore ended_;
  int hired_ = 0;
  // Written between regions, when no helper runs.
  Body body_ = nullptr;
  void* shared_ = nullptr;
  std::atomic<int> next_thread_ = 0;
};

/// Never destroyed: helpers sleep in it until the process ends.
Helpers* helpers = nullptr;

void make_helpers() { helpers = new Helpers; }

Helpers& all_helpers() {
  // A forked child has none of its parent's threads, and locks in their state at the fork: it starts anew.
  [[maybe_unused]] static const bool made = [] {
    make_helpers();
    ::pthread_atfork(nullptr, nullptr, &make_helpers);
    return true;
  }();
  return *helpers;
}

/// The first number of OMP_NUM_THREADS, with which users limit every library; 0 without it.
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
