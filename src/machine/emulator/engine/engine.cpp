#include "machine/emulator/engine/engine.hpp"

#include <utility>

#include "thresher/error.hpp"

namespace thresher::emulator {

thread_local constinit Engine* Engine::running_ = nullptr;

/// Makes the engine the host thread's current one for as long as this lives.
class Engine::Running {
 public:
  explicit Running(Engine& engine) : outer_(std::exchange(running_, &engine)) {}
  ~Running() { running_ = outer_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Engine* outer_;
};

Report launch(const LaunchShape& shape, const Options& options, const GlobalMemory& memory,
              const std::function<void()>& kernel) {
  return Engine(shape, options, memory, kernel).run();
}

Engine::Engine(const LaunchShape& launch_shape, const Options& launch_options, const GlobalMemory& global,
               const std::function<void()>& kernel)
    : shape(launch_shape),
      options(launch_options),
      ordering(cluster),
      words(sites, ordering, cluster),
      findings(options, cluster),
      memory(shape, global, cluster, ordering, words, findings),
      scheduler(options, cluster, findings, words, statistics, *this),
      barriers(cluster, memory, words, findings, scheduler),
      kernel_(kernel) {}

void Engine::refuse_call_outside_a_launch() {
  throw Error(ErrorCode::invalid_argument,
              "A kernel was called outside emulator::launch; device code runs only inside a launch");
}

bool Engine::launch_is_legal() {
  const auto refuse = [this](const std::string& sentence) {
    findings.report(FindingKind::bad_launch, sentence);
    return false;
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  if (shape.grid.count() == 0) {
    return refuse("the grid has no blocks");
  }
  if (shape.block == 0 || shape.block > max_block_threads) {
    return refuse("a block of " + number(shape.block) + " threads; the hardware takes 1 to " +
                  number(max_block_threads));
  }
  if (shape.dynamic_shared_bytes > max_block_shared_bytes) {
    return refuse(number(shape.dynamic_shared_bytes) + " bytes of shared memory; a block has at most " +
                  number(max_block_shared_bytes));
  }
  const std::uint64_t cluster_blocks = shape.cluster.count();
  if (cluster_blocks == 0 || cluster_blocks > max_cluster_blocks) {
    return refuse("a cluster of " + number(cluster_blocks) + " blocks; the hardware takes 1 to " +
                  number(max_cluster_blocks));
  }
  if (shape.grid.x % shape.cluster.x != 0 || shape.grid.y % shape.cluster.y != 0 ||
      shape.grid.z % shape.cluster.z != 0) {
    return refuse("the grid is not a multiple of the cluster in every dimension");
  }
  const std::uint64_t warps = (shape.block + 31) / 32;
  const std::uint64_t registers = warps * 32 * ((shape.registers_at_launch + 7) / 8 * 8);
  if (registers > registers_per_multiprocessor) {
    findings.report(FindingKind::register_budget, number(shape.block) + " threads × " +
                                                      number(shape.registers_at_launch) +
                                                      " registers = " + number(registers) + ", more than the " +
                                                      number(registers_per_multiprocessor) + " of a multiprocessor");
    return false;
  }
  return true;
}

Report Engine::run() {
  if (launch_is_legal()) {
    const Running running(*this);
    for (std::uint32_t z = 0; z < shape.grid.z; z += shape.cluster.z) {
      for (std::uint32_t y = 0; y < shape.grid.y; y += shape.cluster.y) {
        for (std::uint32_t x = 0; x < shape.grid.x && !findings.stopping(); x += shape.cluster.x) {
          run_cluster({x, y, z});
        }
      }
    }
    cluster.threads.clear();
  }
  return {findings.take(), statistics};
}

}  // namespace thresher::emulator
