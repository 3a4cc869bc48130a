#include "strategies/dual_gemm/fused/candidates.hpp"

#include <algorithm>

#include "strategies/dual_gemm/fused/obstacles.hpp"
#include "strategies/dual_gemm/fused/program.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

constexpr int max_stages = 8;
constexpr int handed_over_loader_registers = 40;
constexpr int max_math_registers = 240;

/// As many stages as fit, up to a limit: they cost nothing where only one block fits anyway.
void fill_stages(Config& config, const DeviceSpec& device) {
  config.stages = max_stages;
  while (config.stages > 2 && pipeline::shared_bytes(shape_of(config)) > device.shared_bytes_per_block) {
    --config.stages;
  }
}

/// Registers moved from the loader to the math warpgroups where the launch alone gives too few.
void hand_over_registers(Config& config, const DeviceSpec& device) {
  const int at_launch = launch_registers(config, device);
  if (math_registers_needed(config) <= at_launch) {
    return;
  }
  const int spare = (at_launch - handed_over_loader_registers) / config.math_warpgroups / 8 * 8;
  if (spare > 0) {
    config.loader_registers = handed_over_loader_registers;
    config.math_registers = std::min(max_math_registers, at_launch + spare);
  }
}

/// `config` with `knobs` in place of its own, and what follows from them where they do not say.
Config finished(Config config, const Knobs& knobs, const DeviceSpec& device) {
  const auto apply = [&] { config = knob_table().with(config, knobs, name(config.order)); };
  apply();
  fill_stages(config, device);
  apply();
  hand_over_registers(config, device);
  apply();
  return config;
}

/// Whether the second warpgroup's staging takes a slot from the ring of a pingpong. Such tiles have never been timed.
bool loses_a_stage_to_staging(const Config& config, const DeviceSpec& device) {
  const int staging = shape_of(config).staging_bytes;
  const int bytes = pipeline::shared_bytes(shape_of(config)) + shape_of(config).slot_bytes;
  return config.order == Order::pingpong && config.stages < max_stages &&
         bytes - staging <= device.shared_bytes_per_block;
}

void add_unless_known(std::vector<Config>& all, const Config& config) {
  if (std::find(all.begin(), all.end(), config) == all.end()) {
    all.push_back(config);
  }
}

bool takes_tma_stores(const ProductProblem& problem) { return bits(problem.out) == 16 && problem.n % 8 == 0; }

}  // namespace

std::vector<Config> candidates(const ProductProblem& problem, Order order, const Knobs& knobs,
                               const DeviceSpec& device) {
  std::vector<Config> all;
  Config config = for_problem(problem, order);
  config.epilogue = takes_tma_stores(problem) ? Epilogue::tma : Epilogue::simt;
  for (const int tokens : {64, 128, 256}) {
    config.math_warpgroups = order == Order::pingpong || tokens > 64 ? 2 : 1;
    config.warpgroup_tiles = tokens / 64 / (order == Order::pingpong ? 1 : config.math_warpgroups);
    // 48, 80 and 112: what divides rows of weights among the multiprocessors evenly.
    for (const int outputs : {32, 48, 64, 80, 96, 112, 128}) {
      config.block_outputs = outputs;
      for (const int split : {1, 2}) {
        config.split_k = split;
        for (const bool persistent : {false, true}) {
          config.persistent = persistent;
          // Taking turns needs a second tile; partial sums lie where a second tile's operands would.
          if (order == Order::pingpong ? persistent : !persistent || split == 1) {
            const Config candidate = finished(config, knobs, device);
            if (!knobs.empty() || !loses_a_stage_to_staging(candidate, device)) {
              add_unless_known(all, candidate);
            }
          }
        }
      }
    }
  }
  return all;
}

}  // namespace thresher::strategies::dual_gemm::fused
