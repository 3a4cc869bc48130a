#include "strategies/dual_gemm/fused/host/obstacles.hpp"

#include <fmt/format.h>

namespace thresher::strategies::dual_gemm::fused {
namespace {

constexpr int shared_limit_bytes = 227 * 1024;
constexpr int max_columns = 256;
constexpr int max_cluster = 8;
constexpr int registers_per_multiprocessor = 65536;
constexpr int max_registers = 255;
/// Addresses, phases and the epilogue's values, beside the accumulators; measured of compiled kernels.
constexpr int other_registers = 32;

class Judge {
 public:
  explicit Judge(const Config& config) : config_(config), shape_(shape_of(config)) {}

  std::vector<std::string> judge() {
    if (config_.warpgroup_tiles < 1 || config_.math_warpgroups < 1 || config_.stages < 1 || config_.block_outputs < 8 ||
        config_.block_k < 1 || config_.multicast < 1 || config_.split_k < 1) {
      say("knobs: {} tiles of {} math warpgroups, {} outputs, {} of k, {} stages, multicast {}, split {}: all start at "
          "1, "
          "outputs at 8",
          config_.warpgroup_tiles, config_.math_warpgroups, config_.block_outputs, config_.block_k, config_.stages,
          config_.multicast, config_.split_k);
      return std::move(found_);
    }
    tile();
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
    if (config_.operand == Number::fp32) {
      say("operands: fp32 is not multiplied by this kernel, fp16 and bf16 are");
    }
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

  void cluster() {
    const int blocks = pipeline::cluster_blocks(shape_);
    if (blocks > max_cluster) {
      say("cluster: {} blocks are over the limit of {}", blocks, max_cluster);
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
    if (config_.strategy == Strategy::pingpong && (!config_.persistent || config_.math_warpgroups < 2)) {
      say("pingpong: {} math warpgroups{} cannot take turns: use 2 and persistent", config_.math_warpgroups,
          config_.persistent ? "" : " with one tile a block");
    }
    if (config_.persistent && config_.split_k > 1) {
      say("split-K: partial sums lie in the slots that a persistent block refills: use one tile a block");
    }
    if (config_.stages < 2 && config_.strategy == Strategy::pingpong) {
      say("stages: {}, taking turns needs 2", config_.stages);
    }
    if (config_.epilogue == Epilogue::tma && config_.output == Number::fp32) {
      say("epilogue: tma stages outputs of 16 bits, not fp32: use simt");
    }
  }

  void memory() {
    const int bytes = pipeline::shared_bytes(shape_);
    if (bytes > shared_limit_bytes) {
      say("shared memory: {} bytes a block ({} stages of {}) are over the limit of {} (227 KiB)", bytes, config_.stages,
          shape_.slot_bytes, shared_limit_bytes);
    }
    const int sums = pipeline::math_threads(shape_) * accumulators() / 2 * 4;
    if (config_.split_k > 1 && sums > pipeline::slots_bytes(shape_)) {
      say("split-K: {} bytes of partial sums do not fit into {} stages of {}", sums, config_.stages, shape_.slot_bytes);
    }
  }

  void registers() {
    // Registers are allotted to warps in units that divide evenly among 4 schedulers.
    const int threads = (pipeline::threads(shape_) + 127) / 128 * 128;
    const int at_launch = std::min(max_registers, registers_per_multiprocessor / threads / 8 * 8);
    const bool handed_over = config_.loader_registers > 0 || config_.math_registers > 0;
    const int available = handed_over ? config_.math_registers : at_launch;
    if (const int needed = accumulators() + other_registers; needed > available) {
      say("registers: a math thread needs about {} ({} accumulators), over the {} that {} threads give it", needed,
          accumulators(), available, threads);
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

  /// Of one math thread.
  [[nodiscard]] int accumulators() const {
    const int passes = config_.strategy == Strategy::sequential ? 2 : 1;
    return passes * config_.warpgroup_tiles * slot_weights(config_) / 2;
  }

  const Config& config_;
  pipeline::Shape shape_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> obstacles(const Config& config) { return Judge(config).judge(); }

}  // namespace thresher::strategies::dual_gemm::fused
