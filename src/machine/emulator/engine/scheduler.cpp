#include "machine/emulator/engine/scheduler.hpp"

#include <map>
#include <utility>

namespace thresher::emulator {
namespace {

/// Stacks outlive a launch: mapping them costs more than a small kernel.
StackPool& stack_pool(std::size_t bytes) {
  thread_local std::map<std::size_t, std::unique_ptr<StackPool>> pools;
  auto& pool = pools[bytes];
  if (!pool) {
    pool = std::make_unique<StackPool>(bytes);
  }
  return *pool;
}

}  // namespace

Scheduler::Scheduler(const Options& options, Cluster& cluster, Findings& findings, const Words& words,
                     Statistics& statistics, SchedulerOwner& owner)
    : options_(options),
      cluster_(cluster),
      findings_(findings),
      words_(words),
      statistics_(statistics),
      owner_(owner),
      stacks_(stack_pool(options.stack_bytes)),
      random_(options.schedule.seed) {}

void Scheduler::start_cluster() {
  queue_.reset(options_.schedule, random_, cluster_.running, 32);
  async_.reset(options_.schedule.completions, random_);
  completion_is_due_ = false;
  progress_at_poll_ = progress_;
  idle_poll_rounds_ = 0;
  for (const auto& thread : cluster_.threads) {
    thread->fiber.start(board_, stacks_, [this, started = thread.get()] { owner_.run_thread(*started); });
    thread->state = Thread::State::runnable;
    queue_.insert(thread->index);
  }
}

void Scheduler::run_cluster() {
  while (cluster_.running > 0 && !findings_.stopping()) {
    step();
  }
  if (findings_.stopping()) {
    stop_threads();
  }
  // A store whose source was read may outlive its block; other unfinished work was reported at the block's end.
  while (findings_.empty() && !async_.empty()) {
    async_.complete_one(random_);
  }
  async_.clear();
}

/// Runs one completion, or threads one after the other until one ends or a completion is due.
void Scheduler::step() {
  if (std::exchange(completion_is_due_, false) || completes_first()) {
    ++statistics_.completions;
    progress();
    async_.complete_one(random_);
    return;
  }
  if (queue_.empty() && !wake_pollers()) {
    owner_.stuck();
    return;
  }
  resume(take_next());
}

/// Runs until the thread suspends, or another thread that it switched to.
void Scheduler::resume(Thread& first) {
  cluster_.current = &first;
  first.fiber.resume();
  Thread& last = *std::exchange(cluster_.current, nullptr);
  if (last.fiber.done() && last.state != Thread::State::done) {
    last.state = Thread::State::done;
    if (!findings_.stopping()) {
      progress();
      owner_.thread_ended(last);
    }
  }
}

/// Polling threads run again when no other can. After some rounds without progress it is a deadlock.
bool Scheduler::wake_pollers() {
  idle_poll_rounds_ = progress_ == progress_at_poll_ ? idle_poll_rounds_ + 1 : 0;
  progress_at_poll_ = progress_;
  if (idle_poll_rounds_ > 64) {
    return false;
  }
  bool any = false;
  for (const auto& thread : cluster_.threads) {
    if (thread->state == Thread::State::polling) {
      thread->state = Thread::State::runnable;
      queue_.insert(thread->index);
      any = true;
    }
  }
  return any;
}

void Scheduler::poll(Thread& thread, Wait wait) {
  thread.state = Thread::State::polling;
  thread.wait = wait;
  suspend(thread);
  thread.wait = {};
}

void Scheduler::spin(Thread& thread, std::uint32_t accesses) {
  spun_accesses_ += accesses;
  if (spun_accesses_ > options_.patience_accesses) {
    findings_.fatal(FindingKind::deadlock, words_.of(thread) + " spins: " + std::to_string(spun_accesses_) +
                                               " plain accesses by all threads since anyone synchronised or ended");
  }
  ++progress_;
  poll(thread, {Wait::What::memory, 0, 0, nullptr});
}

/// Resumes every unfinished thread once, so that it unwinds.
void Scheduler::stop_threads() {
  for (const auto& thread : cluster_.threads) {
    if (!thread->fiber.done()) {
      resume(*thread);
      thread->state = Thread::State::done;
    }
  }
}

}  // namespace thresher::emulator
