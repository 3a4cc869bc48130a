#include "strategies/dual_gemm/packed/obstacles.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/packed/program.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

class Judge {
 public:
  Judge(const Config& config, const DeviceSpec& device) : config_(config), device_(device) {}

  std::vector<std::string> judge() {
    slot();
    memory();
    threads();
    reallocation();
    return std::move(found_);
  }

 private:
  template <class... Values>
  void say(fmt::format_string<Values...> text, Values&&... values) {
    found_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }

  /// Whole slots fill K as `pack` pads it.
  void slot() {
    const bool walks_pairs = config_.blocks_per_slot == 1 && config_.overlap != Overlap::none;
    const auto slot_k = static_cast<int>(weight_block_k(config_)) * config_.blocks_per_slot * (walks_pairs ? 2 : 1);
    const auto padded_k = static_cast<int>(k_block_multiple * block_k);
    if (padded_k % slot_k != 0) {
      say("tile: {} along K a slot do not divide the {} to which weights are padded", slot_k, padded_k);
    }
    if (config_.block_tokens % (8 * config_.split_k) != 0) {
      say("split-K: {} tokens are not a multiple of 8 for each of {} parts", config_.block_tokens, config_.split_k);
    }
  }

  void memory() {
    const int bytes = shared_bytes(config_);
    if (bytes > device_.shared_bytes_per_block) {
      say("shared memory: {} bytes a block ({} stages of {}) are over the limit of {} ({} KiB)", bytes, config_.stages,
          shape_of(config_).slot_bytes, device_.shared_bytes_per_block, device_.shared_bytes_per_block / 1024);
    }
    const int sums = pipeline::math_threads(shape_of(config_)) * config_.block_tokens / 2 / 2 * 4;
    if (config_.split_k > 1 && sums > pipeline::slots_bytes(shape_of(config_))) {
      say("split-K: {} bytes of partial sums do not fit into {} stages of {}", sums, config_.stages,
          shape_of(config_).slot_bytes);
    }
  }

  void threads() {
    const int of_block = launch_threads(config_);
    if (of_block > device_.max_threads_per_block) {
      say("threads: {} math warpgroups and a loader are {} threads a block, over the limit of {}",
          config_.math_warpgroups, of_block, device_.max_threads_per_block);
    } else if (of_block * config_.blocks_resident > device_.max_threads_per_multiprocessor) {
      say("threads: {} blocks of {} are over the limit of {} a multiprocessor", config_.blocks_resident, of_block,
          device_.max_threads_per_multiprocessor);
    }
  }

  void reallocation() {
    if (config_.loader_registers == 0 && config_.math_registers == 0) {
      return;
    }
    const int threads = launch_threads(config_) * config_.blocks_resident;
    const int at_launch =
        registers_within_bounds(threads, device_.registers_per_multiprocessor, device_.max_registers_per_thread);
    const int pool = (config_.math_warpgroups + 1) * at_launch;
    const int wanted = config_.loader_registers + config_.math_warpgroups * config_.math_registers;
    if (config_.loader_registers == 0 || config_.math_registers == 0) {
      say("setmaxnreg: loader_registers = {} and math_registers = {} go together, or both are 0",
          config_.loader_registers, config_.math_registers);
    } else if (wanted > pool) {
      say("setmaxnreg: a loader of {} and {} math warpgroups of {} registers are {}, over the pool of {} ({} × {} at "
          "launch); the kernel would hang",
          config_.loader_registers, config_.math_warpgroups, config_.math_registers, wanted, pool,
          config_.math_warpgroups + 1, at_launch);
    }
  }

  const Config& config_;
  const DeviceSpec& device_;
  std::vector<std::string> found_;
};

}  // namespace

std::optional<std::string> unsupported_reason(Format tokens, Format weights, const DeviceSpec& device) {
  const bool has_tokens = tokens == Format::fp16 || tokens == Format::bf16 || tokens == Format::nvfp4;
  if (has_tokens && weights == Format::nvfp4 && device.matrix_unit == MatrixUnit::wgmma) {
    return std::nullopt;
  }
  return fmt::format(
      "strategy packed needs fp16, bf16 or nvfp4 tokens, nvfp4 weights and a Hopper GPU, not {} with {} on {}",
      name(tokens), name(weights), device.name);
}

std::vector<std::string> infeasible_reasons(const Config& config, const DeviceSpec& device) {
  return Judge(config, device).judge();
}

}  // namespace thresher::strategies::dual_gemm::packed
