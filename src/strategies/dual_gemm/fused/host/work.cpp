#include "strategies/dual_gemm/fused/host/work.hpp"

#include "strategies/dual_gemm/host/tile_work.hpp"

namespace thresher::strategies::dual_gemm::fused {

WorkModel work(const ProductProblem& problem, const Config& config) {
  return {{tiled_kernel(problem, {.weight_rows = 2 * config.block_outputs,
                                  .slot_weight_rows = slot_weights(config),
                                  .tokens = block_tokens(config),
                                  .k = config.block_k,
                                  .walks = config.order == Order::sequential ? 2 : 1,
                                  .stages = config.stages,
                                  .cluster = config.multicast * config.split_k,
                                  .split_k = config.split_k,
                                  .persistent = config.persistent,
                                  .tma_stores = config.epilogue == Epilogue::tma,
                                  .hides_epilogue = config.order == Order::pingpong,
                                  .dependent_launch = config.dependent_launch})}};
}

}  // namespace thresher::strategies::dual_gemm::fused
