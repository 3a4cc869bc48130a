#include "strategies/grouped_gemm/rows/obstacles.hpp"

#include "strategies/grouped_gemm/host/obstacles.hpp"

namespace thresher::strategies::grouped_gemm::rows {
namespace {

constexpr int max_columns = 256;  // of the matrix instruction
/// Addresses, phases and the epilogue's values, beside the accumulators: measured of compiled kernels.
constexpr int other_registers = 40;

}  // namespace

std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                            const DeviceSpec& device) {
  InfeasibleReasons found;
  check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
  if (const int columns = 2 * config.block_outputs; columns > max_columns) {
    found.say("tile: {} rows of weights are over the limit of {}, a matrix instruction's columns", columns,
              max_columns);
  }
  if (config.math_warpgroups < 2 || config.stages < 2) {
    found.say("rows: {} math warpgroups and a ring of {} slots leave nobody to take turns: use 2 of each at least",
              config.math_warpgroups, config.stages);
  }
  if (config.output_scaling == Scaling::block && tile_outputs(config) != dual_gemm::scale_block) {
    found.say("requantising: {} outputs share a scale, a tile has {}: use tiles of as many", dual_gemm::scale_block,
              tile_outputs(config));
  }
  check_numbers({config.numerics, config.operand, scaling_knobs(config), config.block_k}, found);
  check_block(
      {.shape = shape_of(config), .experts = problem.experts, .registers = sum_registers(config) + other_registers},
      device, found);
  return found.take();
}

}  // namespace thresher::strategies::grouped_gemm::rows
