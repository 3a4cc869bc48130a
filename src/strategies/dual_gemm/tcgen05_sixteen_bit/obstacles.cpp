#include "strategies/dual_gemm/tcgen05_sixteen_bit/obstacles.hpp"

#include <fmt/format.h>

namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit {

std::vector<std::string> obstacles(const Config& config, const DeviceSpec& device) {
  const pipeline::TensorShape shape = shape_of(config);
  std::vector<std::string> found;
  if (const int used = pipeline::used_columns(shape); used > device.tensor_memory_columns) {
    found.push_back(
        fmt::format("tensor memory: {} columns (sums of gate and up of {} tokens{}) are over the limit of {}", used,
                    config.block_tokens, config.persistent ? ", twice" : "", device.tensor_memory_columns));
  }
  if (const int bytes = pipeline::shared_bytes(shape); bytes > device.shared_bytes_per_block) {
    found.push_back(fmt::format("shared memory: {} bytes a block ({} stages of {}) are over the limit of {}", bytes,
                                config.stages, shape.slot_bytes, device.shared_bytes_per_block));
  }
  if (device.resident_blocks(config.blocks, 1) < config.blocks) {
    found.push_back(fmt::format("cluster: {} blocks with a multiprocessor each have no room on {} multiprocessors",
                                config.blocks, device.multiprocessors));
  }
  return found;
}

}  // namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit
