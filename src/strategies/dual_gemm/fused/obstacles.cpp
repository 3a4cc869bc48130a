#include "strategies/dual_gemm/fused/obstacles.hpp"

#include <fmt/format.h>

#include "strategies/launch_registers.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

constexpr int max_columns = 256;
constexpr int max_box_rows = 256;
/// Addresses, phases and the epilogue's values, beside the accumulators: at the least, and measured of compiled
/// kernels.
constexpr int min_other_registers = 24;
constexpr int other_registers = 32;

/// Of one math thread.
int accumulators(const Config& config) {
  const int passes = config.order == Order::sequential ? 2 : 1;
  return passes * config.warpgroup_tiles * slot_weights(config) / 2;
}

class Judge {
 public:
  Judge(const ProductProblem& problem, const Config& config, const DeviceSpec& device)
      : problem_(problem), config_(config), device_(device), shape_(shape_of(config)) {}

  std::vector<std::string> judge() {
    tile();
    copies();
    cluster();
    order();
    memory();
    registers();
    return std::move(found_);
  }

 private:
  template <class... Values>
  void say(fmt::format_string<Values...> text, Values&&... values) {
    found_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }

  void tile() {
    if (slot_weights(config_) > max_columns) {
      say("matrix shape: {} columns (rows of weights in a slot), wgmma takes up to {}", slot_weights(config_),
          max_columns);
    }
    const int granule = 8 * config_.split_k;
    if (config_.block_outputs % granule != 0) {
      say("tile: {} outputs are not a multiple of {} (8 for each of {} parts of a split)", config_.block_outputs,
          granule, config_.split_k);
    }
    if (config_.block_k % panel_k != 0) {
      say("tile: {} of k are not a multiple of {}, a swizzled row of 128 bytes", config_.block_k, panel_k);
    }
  }

  void copies() {
    if (config_.epilogue == Epilogue::tma && problem_.n * element_bytes(config_.output) % tma_alignment_bytes != 0) {
      say("TMA: a row of c is {} bytes, not a multiple of {}: use the simt epilogue",
          problem_.n * element_bytes(config_.output), tma_alignment_bytes);
    }
    if (block_tokens(config_) > max_box_rows) {
      say("TMA: a box of {} tokens is over the limit of {}", block_tokens(config_), max_box_rows);
    }
  }

  void cluster() {
    const int blocks = pipeline::cluster_blocks(shape_);
    if (blocks > device_.max_cluster) {
      say("cluster: {} blocks are over the limit of {}", blocks, device_.max_cluster);
    }
    if (const std::int64_t steps = (problem_.k + config_.block_k - 1) / config_.block_k; config_.split_k > steps) {
      say("split-K: {} parts of {} K steps leave a block without work", config_.split_k, steps);
    }
    if (config_.split_k > 2) {
      say("split-K: {} parts, this kernel adds up 2", config_.split_k);
    }
    if (slot_weights(config_) % weight_pieces(config_) != 0 || piece_rows(config_) % 8 != 0) {
      say("multicast: {} rows of weights in {} pieces are not pieces of whole groups of 8 rows", slot_weights(config_),
          weight_pieces(config_));
    }
  }

  void order() {
    if (config_.order == Order::pingpong && (!config_.persistent || config_.math_warpgroups < 2)) {
      say("pingpong: {} math warpgroups{} cannot take turns: use 2 and persistent", config_.math_warpgroups,
          config_.persistent ? "" : " with one tile a block");
    }
    if (config_.persistent && config_.split_k > 1) {
      say("split-K: partial sums lie in the slots that a persistent block refills: use one tile a block");
    }
    if (config_.stages < 2 && config_.order == Order::pingpong) {
      say("stages: {}, taking turns needs 2", config_.stages);
    }
    if (config_.epilogue == Epilogue::tma && config_.output == Number::fp32) {
      say("epilogue: tma stages outputs of 16 bits, not fp32: use simt");
    }
  }

  void memory() {
    const int bytes = pipeline::shared_bytes(shape_);
    if (bytes > device_.shared_bytes_per_block) {
      say("shared memory: {} bytes a block ({} stages of {}) are over the limit of {} ({} KiB)", bytes, config_.stages,
          shape_.slot_bytes, device_.shared_bytes_per_block, device_.shared_bytes_per_block / 1024);
    }
    const int sums = pipeline::math_threads(shape_) * accumulators(config_) / 2 * 4;
    if (config_.split_k > 1 && sums > pipeline::slots_bytes(shape_)) {
      say("split-K: {} bytes of partial sums do not fit into {} stages of {}", sums, config_.stages, shape_.slot_bytes);
    }
  }

  void registers() {
    const int threads = pipeline::threads(shape_);
    if (threads > device_.max_threads_per_block) {
      say("threads: {} math warpgroups and a loader are {} threads a block, over the limit of {}",
          config_.math_warpgroups, threads, device_.max_threads_per_block);
      return;
    }
    const int at_launch = launch_registers(config_, device_);
    const bool handed_over = config_.loader_registers > 0 || config_.math_registers > 0;
    const int available = handed_over ? config_.math_registers : at_launch;
    if (const int needed = accumulators(config_) + other_registers; needed > available) {
      say("registers: a math thread needs about {} ({} accumulators), over the {} that {} threads give it", needed,
          accumulators(config_), available, threads);
    }
    if (!handed_over) {
      return;
    }
    const int pool = (config_.math_warpgroups + 1) * at_launch;
    const int wanted = config_.loader_registers + config_.math_warpgroups * config_.math_registers;
    if (wanted > pool) {
      say("setmaxnreg: a loader of {} and {} math warpgroups of {} registers are {}, over the pool of {} ({} × {} at "
          "launch); "
          "the kernel would hang",
          config_.loader_registers, config_.math_warpgroups, config_.math_registers, wanted, pool,
          config_.math_warpgroups + 1, at_launch);
    }
    for (const int count : {config_.loader_registers, config_.math_registers}) {
      if (count % 8 != 0 || count < 24 || count > 240) {
        say("setmaxnreg: {} registers are not a multiple of 8 from 24 to 240", count);
      }
    }
  }

  const ProductProblem& problem_;
  const Config& config_;
  const DeviceSpec& device_;
  pipeline::Shape shape_;
  std::vector<std::string> found_;
};

}  // namespace

int launch_registers(const Config& config, const DeviceSpec& device) {
  return registers_within_bounds(pipeline::threads(shape_of(config)), device.registers_per_multiprocessor,
                                 device.max_registers_per_thread);
}

int math_registers_needed(const Config& config) { return accumulators(config) + min_other_registers; }

std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                            const DeviceSpec& device) {
  return Judge(problem, config, device).judge();
}

}  // namespace thresher::strategies::dual_gemm::fused
