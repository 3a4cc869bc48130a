#include "strategies/grouped_gemm/tcgen05_plain/obstacles.hpp"

#include "strategies/gemm/infeasible.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                            const DeviceSpec& device) {
  const pipeline::TensorShape shape = shape_of(config);
  InfeasibleReasons found;
  check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
  if (const int used = pipeline::used_columns(shape); used > device.tensor_memory_columns) {
    found.say("tensor memory: {} columns (sums of {} of {} tokens, twice) are over the limit of {}", used,
              config.matrices == 2 ? "gate and up" : "one matrix", config.block_tokens, device.tensor_memory_columns);
  }
  check_split(shape, problem.k, slot_k(config), config.block_tokens, found);
  check_clusters(shape, problem.experts, device, found);
  return found.take();
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
