#include "strategies/grouped_gemm/tcgen05/obstacles.hpp"

#include "strategies/gemm/infeasible.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                            const DeviceSpec& device) {
  const pipeline::TensorShape shape = shape_of(config);
  InfeasibleReasons found;
  check_groups(problem, tile_widths_of(config), static_cast<int>(tile_outputs(config)), found);
  if (const int used = pipeline::used_columns(shape); used > device.tensor_memory_columns) {
    found.say(
        "tensor memory: {} columns ({} for sums and {} for the scales of each of {} stages) are over the limit of {}",
        used, shape.sums * shape.sum_columns, shape.scale_columns, config.stages, device.tensor_memory_columns);
  }
  check_split(shape, problem.k, weights::slot_k, config.block_tokens, found);
  check_clusters(shape, problem.experts, device, found);
  return found.take();
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
