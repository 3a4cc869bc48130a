#pragma once
/// Decides which thread runs next, and when asynchronous work completes.
#include <cstdint>
#include <memory>

#include "machine/emulator/engine/async.hpp"
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/schedule.hpp"
#include "machine/emulator/engine/state.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

/// The owner's callbacks at three moments of a cluster's life.
class SchedulerOwner {
 public:
  /// Called on the thread's own stack.
  virtual void run_thread(Thread& thread) = 0;
  virtual void thread_ended(Thread& thread) = 0;
  /// No thread can run and no work is in flight.
  virtual void stuck() = 0;

 protected:
  ~SchedulerOwner() = default;
};

class Scheduler {
 public:
  Scheduler(const Options& options, Cluster& cluster, Findings& findings, const Words& words, Statistics& statistics,
            SchedulerOwner& owner);

  /// Gives every thread of the cluster a stack. Throws Error(out_of_memory) when the host has none left.
  void start_cluster();
  /// Runs until every thread has ended and no work is in flight, or the launch stops.
  void run_cluster();

  // The running thread calls these.
  /// Suspends until wake(); throws StopThread when the launch stops.
  void block(Thread& thread, Wait wait);
  /// A point where another thread may run first.
  void pause(Thread& thread);
  /// A failed attempt that the thread will repeat: others run first. It is a deadlock when no thread makes progress any
  /// more.
  void poll(Thread& thread, Wait wait);
  /// Called after `accesses` plain accesses in a row: others run first. Too many by all threads together are a
  /// deadlock.
  void spin(Thread& thread, std::uint32_t accesses);

  void wake(Thread& thread);
  /// A thread made progress: polling threads may see it.
  void progress() {
    ++progress_;
    spun_accesses_ = 0;
  }
  /// Submits work that completes when the schedule says, in the order of its queue if it has one.
  void submit(std::unique_ptr<AsyncWork> work, AsyncQueue* queue = nullptr) { async_.submit(std::move(work), queue); }

 private:
  void step();
  [[nodiscard]] bool completes_first();
  [[nodiscard]] Thread& take_next();
  void resume(Thread& thread);
  void suspend(Thread& thread);
  bool wake_pollers();
  void stop_threads();

  const Options& options_;
  Cluster& cluster_;
  Findings& findings_;
  const Words& words_;
  Statistics& statistics_;
  SchedulerOwner& owner_;
  StackPool& stacks_;
  Switchboard board_;
  Random random_;
  AsyncEngine async_;
  ThreadQueue queue_;
  bool completion_is_due_ = false;  // decided by a thread that then suspended
  std::uint64_t progress_ = 0;
  std::uint64_t progress_at_poll_ = 0;
  std::uint32_t idle_poll_rounds_ = 0;
  std::uint64_t spun_accesses_ = 0;  // plain accesses since the last synchronisation
};

// --- inlined since every switch of threads uses them: fewer calls mean fewer mispredicted returns --------------------
/// Whether asynchronous work completes before the next step of a thread.
inline bool Scheduler::completes_first() { return async_.eager(random_) || (queue_.empty() && !async_.empty()); }

inline Thread& Scheduler::take_next() {
  ++statistics_.switches;
  return *cluster_.threads[queue_.take(random_)];
}

/// Switches directly to the next thread; the scheduler handles completions and the case that no thread can run.
inline void Scheduler::suspend(Thread& thread) {
  if (findings_.stopping() || queue_.empty()) {
    thread.fiber.suspend();
  } else if (completes_first()) {
    completion_is_due_ = true;
    thread.fiber.suspend();
  } else if (Thread& next = take_next(); &next != &thread) {
    cluster_.current = &next;
    thread.fiber.hand_over_to(next.fiber);
  }
  if (findings_.stopping()) {
    throw StopThread{};
  }
}

inline void Scheduler::block(Thread& thread, Wait wait) {
  thread.state = Thread::State::blocked;
  thread.wait = wait;
  suspend(thread);
  thread.wait = {};
}

inline void Scheduler::wake(Thread& thread) {
  if (thread.state == Thread::State::blocked || thread.state == Thread::State::polling) {
    thread.state = Thread::State::runnable;
    queue_.insert(thread.index);
    progress();
  }
}

inline void Scheduler::pause(Thread& thread) {
  thread.plain_accesses = 0;
  if (queue_.interrupts(random_)) {
    queue_.insert(thread.index);
    suspend(thread);
  }
}

}  // namespace thresher::emulator
