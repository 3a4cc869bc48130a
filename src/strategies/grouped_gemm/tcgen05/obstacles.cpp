#include "strategies/grouped_gemm/tcgen05/obstacles.hpp"

#include <algorithm>

#include "pipeline/grouped/tensor_groups.hpp"
#include "strategies/grouped_gemm/host/obstacles.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

std::vector<std::string> obstacles(const GroupedProblem& problem, const Config& config, const DeviceSpec& device) {
  const pipeline::TensorShape shape = shape_of(config);
  Obstacles found;
  check_groups(problem, rungs_of(config), static_cast<int>(tile_outputs(config)), found);
  if (const int used = pipeline::used_columns(shape); used > device.tensor_memory_columns) {
    found.say(
        "tensor memory: {} columns ({} for sums and {} for the scales of each of {} stages) are over the limit of {}",
        used, shape.sums * shape.sum_columns, shape.scale_columns, config.stages, device.tensor_memory_columns);
  }
  const std::int64_t experts = std::min<std::int64_t>(problem.experts, pipeline::most_groups);
  if (const int bytes = pipeline::grouped_shared_bytes(shape, static_cast<u32>(experts));
      bytes > device.shared_bytes_per_block) {
    found.say("shared memory: {} bytes a block ({} stages of {}, a directory of {} experts) are over the limit of {}",
              bytes, config.stages, shape.slot_bytes, experts, device.shared_bytes_per_block);
  }
  if (device.resident_blocks(config.blocks, 1) < config.blocks) {
    found.say("cluster: {} blocks with a multiprocessor each have no room on {} multiprocessors", config.blocks,
              device.multiprocessors);
  }
  return found.take();
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
