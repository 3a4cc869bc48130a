#include "strategies/dual_gemm/tcgen05/obstacles.hpp"

#include <fmt/format.h>

namespace thresher::strategies::dual_gemm::tcgen05 {
namespace {

constexpr int most_split_tokens = 128;

class Judge {
 public:
  Judge(const DualGemmProblem& problem, const Config& config, const DeviceSpec& device)
      : problem_(problem), config_(config), device_(device), shape_(shape_of(config)) {}

  std::vector<std::string> judge() {
    split();
    columns();
    memory();
    cluster();
    return std::move(found_);
  }

 private:
  template <class... Values>
  void say(fmt::format_string<Values...> text, Values&&... values) {
    found_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }

  void split() {
    const auto steps = static_cast<int>(k_steps(static_cast<u32>(problem_.k)));
    if (config_.split_k > steps) {
      say("split-K: k = {} is {} slot{} of {}, too few for {} parts", problem_.k, steps, steps == 1 ? "" : "s", slot_k,
          config_.split_k);
    }
    if (config_.split_k == 1) {
      return;
    }
    if (config_.persistent) {
      say("split-K: a persistent block takes whole tiles, not one of {} parts", config_.split_k);
    }
    if (config_.block_tokens > most_split_tokens) {
      say("split-K: {} tokens are over the {} whose partial sums a thread holds in registers", config_.block_tokens,
          most_split_tokens);
    }
    const int sums = static_cast<int>(tile_rows) * config_.block_tokens / config_.split_k * 4;
    if (sums > pipeline::slots_bytes(shape_)) {
      say("split-K: {} bytes of partial sums do not fit into {} stages of {}", sums, config_.stages, shape_.slot_bytes);
    }
  }

  void columns() {
    const int used = pipeline::used_columns(shape_);
    if (used > device_.tensor_memory_columns) {
      say("tensor memory: {} columns ({} for sums and {} for the scales of each of {} stages) are over the limit of {}",
          used, shape_.sums * shape_.sum_columns, shape_.scale_columns, config_.stages, device_.tensor_memory_columns);
    }
  }

  void memory() {
    const int bytes = pipeline::shared_bytes(shape_);
    if (bytes > device_.shared_bytes_per_block) {
      say("shared memory: {} bytes a block ({} stages of {}) are over the limit of {} ({} KiB)", bytes, config_.stages,
          shape_.slot_bytes, device_.shared_bytes_per_block, device_.shared_bytes_per_block / 1024);
    }
  }

  /// Every multiprocessor holds one block.
  void cluster() {
    const int blocks = pipeline::cluster_blocks(shape_);
    if (device_.resident_blocks(blocks, 1) < blocks) {
      say("cluster: {} blocks with a multiprocessor each have no room on {} multiprocessors", blocks,
          device_.multiprocessors);
    }
  }

  const DualGemmProblem& problem_;
  const Config& config_;
  const DeviceSpec& device_;
  pipeline::TensorShape shape_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> obstacles(const DualGemmProblem& problem, const Config& config, const DeviceSpec& device) {
  return Judge(problem, config, device).judge();
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
