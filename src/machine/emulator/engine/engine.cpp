#include "machine/emulator/engine/engine.hpp"

#include <exception>
#include <tuple>
#include <utility>

#include "thresher/error.hpp"

namespace thresher::emulator {
namespace {

thread_local Engine* running_engine = nullptr;
thread_local Thread* current_thread = nullptr;

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

Report launch(const LaunchShape& shape, const Options& options, const GlobalMemory& memory,
              const std::function<void()>& kernel) {
  return Engine(shape, options, memory, kernel).run();
}

Engine::Engine(const LaunchShape& launch_shape, const Options& launch_options, const GlobalMemory& memory,
               const std::function<void()>& kernel)
    : shape(launch_shape),
      options(launch_options),
      random(launch_options.schedule.seed),
      kernel_(kernel),
      stacks_(stack_pool(options.stack_bytes)) {
  sites_.emplace_back();
  for (const auto& buffer : memory.buffers()) {
    const bool shadowed = buffer.use == Use::output || buffer.use == Use::input_output;
    buffers_.push_back(
        {&buffer, shadowed ? std::make_unique<Shadow>(buffer.bytes, buffer.use == Use::input_output) : nullptr});
  }
}

Engine::~Engine() = default;

Engine& Engine::current() {
  if (running_engine == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "A kernel was called outside emulator::launch; device code runs only inside a launch");
  }
  return *running_engine;
}

Thread& Engine::self() {
  current();
  return *current_thread;
}

Thread* Engine::running_thread() { return current_thread; }

Report Engine::run() {
  if (launch_is_legal()) {
    Engine* const outer = std::exchange(running_engine, this);
    for (std::uint32_t z = 0; z < shape.grid.z && !stopping_; z += shape.cluster.z) {
      for (std::uint32_t y = 0; y < shape.grid.y && !stopping_; y += shape.cluster.y) {
        for (std::uint32_t x = 0; x < shape.grid.x && !stopping_; x += shape.cluster.x) {
          start_cluster(x, y, z);
          run_cluster();
          end_cluster();
        }
      }
    }
    threads.clear();
    running_engine = outer;
  }
  return {std::move(findings_), statistics};
}

void Engine::run_cluster() {
  while (running > 0 && !stopping_) {
    step();
  }
  if (stopping_) {
    stop_threads();
  }
  // A store whose source was read may outlive its block; work that may not was a finding when the block ended.
  while (findings_.empty() && !async.empty()) {
    async.complete_one(random);
  }
  async.clear();
}

/// One completion, or one thread until it waits or lets others run.
void Engine::step() {
  if (async.eager(random) || (queue_.empty() && !async.empty())) {
    ++statistics.completions;
    progress();
    async.complete_one(random);
    return;
  }
  if (queue_.empty() && !wake_pollers()) {
    report_deadlock();
    return;
  }
  Thread& thread = *threads[queue_.take(random)];
  ++statistics.switches;
  current_thread = &thread;
  thread.fiber.resume();
  current_thread = nullptr;
  if (thread.fiber.done() && thread.state != Thread::State::done) {
    thread_ended(thread);
  }
}

/// Threads that poll run again when nothing else can; after some rounds in which nobody achieved anything it is a
/// deadlock.
bool Engine::wake_pollers() {
  idle_poll_rounds_ = progress_ == progress_at_poll_ ? idle_poll_rounds_ + 1 : 0;
  progress_at_poll_ = progress_;
  if (idle_poll_rounds_ > 64) {
    return false;
  }
  bool any = false;
  for (auto& thread : threads) {
    if (thread->state == Thread::State::polling) {
      thread->state = Thread::State::runnable;
      queue_.insert(thread->index);
      any = true;
    }
  }
  return any;
}

void Engine::block(Thread& thread, Wait wait) {
  thread.state = Thread::State::blocked;
  thread.wait = wait;
  thread.fiber.suspend();
  if (stopping_) {
    throw StopThread{};
  }
  thread.wait = {};
}

void Engine::wake(Thread& thread) {
  if (thread.state == Thread::State::blocked || thread.state == Thread::State::polling) {
    thread.state = Thread::State::runnable;
    queue_.insert(thread.index);
    progress();
  }
}

void Engine::pause(Thread& thread) {
  thread.plain_accesses = 0;
  if (queue_.interrupts(random)) {
    queue_.insert(thread.index);
    thread.fiber.suspend();
    if (stopping_) {
      throw StopThread{};
    }
  }
}

void Engine::poll(Thread& thread, Wait wait) {
  thread.state = Thread::State::polling;
  thread.wait = wait;
  thread.fiber.suspend();
  if (stopping_) {
    throw StopThread{};
  }
  thread.wait = {};
}

void Engine::spin(Thread& thread, std::uint32_t accesses) {
  spun_accesses_ += accesses;
  if (spun_accesses_ > options.patience_accesses) {
    fatal(FindingKind::deadlock, words(thread) + " spins: " + std::to_string(spun_accesses_) +
                                     " plain accesses by all threads since anyone synchronised or ended");
  }
  ++progress_;
  poll(thread, {Wait::What::memory, 0, 0, nullptr});
}

/// Every thread that has not ended is resumed once and unwinds.
void Engine::stop_threads() {
  for (auto& thread : threads) {
    if (!thread->fiber.done()) {
      current_thread = thread.get();
      thread->fiber.resume();
      current_thread = nullptr;
      thread->state = Thread::State::done;
    }
  }
}

void Engine::thread_ended(Thread& thread) {
  thread.state = Thread::State::done;
  progress();
  --running;
  finish_cluster_phase_if_complete();
  if (--thread.block->running == 0 && !stopping_) {
    check_block_end(*thread.block);
  }
}

// --- order -----------------------------------------------------------------------------------------------------------

std::uint32_t Engine::site(Site site) {
  const auto file = reinterpret_cast<std::uintptr_t>(site.file);
  const std::uint64_t key = file * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(site.line);
  RecentSite& recent = recent_sites_[(key ^ key >> 32) % recent_sites_.size()];
  if (recent.key == key) {
    return recent.number;
  }
  const auto [entry, is_new] = site_numbers_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back(site);
  }
  recent = {key, entry->second};
  return entry->second;
}

Lane Engine::new_lane(LaneOwner owner) {
  lanes_.push_back(owner);
  return static_cast<Lane>(lanes_.size() - 1);
}

void Engine::learn(Thread& thread, const Knowledge& news) {
  thread.knowledge.join(news);
  ++thread.news;
}

void Engine::learn(Thread& thread, Lane lane, std::uint32_t clock) {
  if (thread.knowledge.seen.raise(lane, clock)) {
    ++thread.news;
  }
}

void Engine::release(Thread& thread, Knowledge& into) {
  into.join(thread.knowledge);
  tick(thread);
}

Access Engine::access(const Thread& thread, AccessKind kind, std::uint32_t site_number) const {
  return {thread.clock(), site_number, cluster_serial, thread.lane(), kind};
}

bool Engine::ordered_across_clusters(const Access& earlier, const VectorClock& seen) const {
  for (const auto& [release, lane] : acquired_) {
    if (release->cluster == earlier.cluster && release->seen.at(earlier.lane) >= earlier.clock && seen.at(lane) != 0) {
      return true;
    }
  }
  return false;
}

void Engine::acquire_release(Thread& thread, const GlobalRelease& release) {
  const auto [entry, is_new] = acquired_.try_emplace(&release, Lane{0});
  if (is_new) {
    entry->second = new_lane({LaneOwner::What::release, nullptr});
  }
  learn(thread, entry->second, 1);
}

// --- findings --------------------------------------------------------------------------------------------------------

void Engine::report(FindingKind kind, std::string sentence, std::vector<std::string> details) {
  if (findings_.size() < options.max_findings) {
    findings_.push_back({kind, std::move(sentence), std::move(details), options.schedule.seed});
  }
  if (findings_.size() >= options.max_findings) {
    stopping_ = true;
  }
}

bool Engine::first_time(FindingKind kind, std::uint32_t site_number, std::uint64_t key) {
  return reported_.emplace(static_cast<std::uint64_t>(kind) << 32 | site_number, key).second;
}

void Engine::fatal(FindingKind kind, std::string sentence, std::vector<std::string> details) {
  report(kind, std::move(sentence), std::move(details));
  stopping_ = true;
  if (current_thread != nullptr) {
    throw StopThread{};
  }
}

}  // namespace thresher::emulator
