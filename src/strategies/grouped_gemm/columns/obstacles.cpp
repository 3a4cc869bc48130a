#include "strategies/grouped_gemm/columns/obstacles.hpp"

#include "strategies/grouped_gemm/columns/program.hpp"
#include "strategies/grouped_gemm/host/obstacles.hpp"

namespace thresher::strategies::grouped_gemm::columns {
namespace {

constexpr int max_box_rows = 256;
/// Addresses, phases and the epilogue's values, beside the accumulators: measured of compiled kernels.
constexpr int other_registers = 40;

}  // namespace

std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                            const DeviceSpec& device) {
  InfeasibleReasons found;
  check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
  if (weight_box_rows(config) > max_box_rows) {
    found.say("TMA: a box of {} rows of weights is over the limit of {}", weight_box_rows(config), max_box_rows);
  }
  if (config.by_turns && (config.math_warpgroups < 2 || config.stages < 2)) {
    found.say("by_turns: {} math warpgroups and a ring of {} slots leave nobody to take turns: use 2 of each at least",
              config.math_warpgroups, config.stages);
  }
  if (config.output_scaling == Scaling::block && tile_warpgroups(config) % 2 != 0) {
    found.say(
        "requantising: a warpgroup makes {} of the {} outputs that share a scale, and the one beside it the others: "
        "use 2 or 4 math warpgroups on one tile",
        sum_rows, dual_gemm::scale_block);
  }
  check_numbers({config.numerics, config.operand, scaling_knobs(config), config.block_k}, found);
  check_block({.shape = shape_of(config),
               .blocks_resident = config.blocks_resident,
               .experts = problem.experts,
               .registers = sum_registers(config) + other_registers},
              device, found);
  return found.take();
}

}  // namespace thresher::strategies::grouped_gemm::columns
