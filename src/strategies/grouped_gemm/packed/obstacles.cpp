#include "strategies/grouped_gemm/packed/obstacles.hpp"

#include "strategies/gemm/infeasible.hpp"

namespace thresher::strategies::grouped_gemm::packed {
namespace {

/// Addresses, packed words, fragments and the epilogue's values, beside the accumulators: at the least.
constexpr int other_registers = 32;

}  // namespace

std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                            const DeviceSpec& device) {
  InfeasibleReasons found;
  check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
  const bool walks_pairs = config.blocks_per_slot == 1 && config.overlap != Overlap::none;
  const auto slot_k =
      static_cast<int>(weight_block_k(config.numerics)) * config.blocks_per_slot * (walks_pairs ? 2 : 1);
  if (const auto padded_k = static_cast<int>(weights::k_block_multiple * weights::block_k); padded_k % slot_k != 0) {
    found.say("tile: {} along K a slot do not divide the {} to which weights are padded", slot_k, padded_k);
  }
  if (config.numerics == Numerics::fast && problem.layout == ProductRows::masked && problem.a != Format::nvfp4) {
    found.say("fast: tokens of {} in slots are not folded, those of packed and gathered rows are",
              thresher::name(problem.a));
  }
  check_block({.shape = shape_of(config),
               .blocks_resident = config.blocks_resident,
               .experts = problem.experts,
               .registers = config.block_tokens / 2 + other_registers},
              device, found);
  return found.take();
}

}  // namespace thresher::strategies::grouped_gemm::packed
