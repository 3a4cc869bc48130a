#include "strategies/dual_gemm/host/tensor_obstacles.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/integers.hpp"

namespace thresher::strategies::dual_gemm {
namespace {

class TensorJudge {
 public:
  TensorJudge(const pipeline::TensorShape& shape, const DeviceSpec& device) : shape_(shape), device_(device) {}

  std::vector<std::string> judge(std::int64_t k, std::int64_t slot_k) {
    split(k, slot_k);
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

  void split(std::int64_t k, std::int64_t slot_k) {
    const std::int64_t steps = ceil_div(k, slot_k);
    if (shape_.split_groups > steps) {
      say("split-K: k = {} is {} slot{} of {}, too few for {} parts", k, steps, steps == 1 ? "" : "s", slot_k,
          shape_.split_groups);
    }
    if (shape_.split_groups > 1 && shape_.persistent) {
      say("split-K: a persistent block takes whole tiles, not one of {} parts", shape_.split_groups);
    }
  }

  void columns() {
    const int used = pipeline::used_columns(shape_);
    if (used <= device_.tensor_memory_columns) {
      return;
    }
    const int limit = device_.tensor_memory_columns;
    const int sums = shape_.sums * shape_.sum_columns;
    if (shape_.scale_columns > 0) {
      say("tensor memory: {} columns ({} for sums and {} for the scales of each of {} stages) are over the limit of {}",
          used, sums, shape_.scale_columns, shape_.stages, limit);
    } else {
      say("tensor memory: {} columns ({} for the sums of a tile{}) are over the limit of {}", used, shape_.sum_columns,
          shape_.sums == 1 ? "" : ", twice", limit);
    }
  }

  void memory() {
    const int bytes = pipeline::shared_bytes(shape_);
    if (bytes > device_.shared_bytes_per_block) {
      say("shared memory: {} bytes a block ({} stages of {}) are over the limit of {} ({} KiB)", bytes, shape_.stages,
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

  const pipeline::TensorShape& shape_;
  const DeviceSpec& device_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> tensor_infeasible_reasons(const pipeline::TensorShape& shape, std::int64_t k,
                                                   std::int64_t slot_k, const DeviceSpec& device) {
  return TensorJudge(shape, device).judge(k, slot_k);
}

}  // namespace thresher::strategies::dual_gemm
