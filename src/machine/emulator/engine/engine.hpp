#pragma once
/// One launch: its parts, and the loop over its clusters. Internal to the emulator; kernels and users see launch.hpp
/// and the vocabulary.
#include <cstdint>
#include <functional>

#include "machine/emulator/engine/barriers.hpp"
#include "machine/emulator/engine/findings.hpp"
#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/memory.hpp"
#include "machine/emulator/engine/ordering.hpp"
#include "machine/emulator/engine/scheduler.hpp"
#include "machine/emulator/engine/sites.hpp"
#include "machine/emulator/engine/state.hpp"
#include "machine/emulator/engine/words.hpp"

namespace thresher::emulator {

class Engine final : private SchedulerOwner {
 public:
  Engine(const LaunchShape& shape, const Options& options, const GlobalMemory& memory,
         const std::function<void()>& kernel);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  Report run();

  /// The engine and thread that now run on this host thread.
  static Engine& current() {
    if (running_ == nullptr) {
      refuse_call_outside_a_launch();
    }
    return *running_;
  }
  static Thread& self() { return *current().cluster.current; }

  const LaunchShape shape;
  const Options options;
  Statistics statistics;
  Cluster cluster;
  Sites sites;
  Ordering ordering;
  Words words;
  Findings findings;
  Memory memory;
  Scheduler scheduler;
  Barriers barriers;

 private:
  class Running;
  [[noreturn]] static void refuse_call_outside_a_launch();
  bool launch_is_legal();
  void run_cluster(Extent first);
  void build_cluster(Extent first);
  void run_thread(Thread& thread) override;
  void thread_ended(Thread& thread) override;
  void stuck() override;

  static thread_local constinit Engine* running_;
  const std::function<void()>& kernel_;
};

}  // namespace thresher::emulator
