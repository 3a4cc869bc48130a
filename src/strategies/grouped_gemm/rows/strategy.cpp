#include "strategies/grouped_gemm/rows/strategy.hpp"

#include <algorithm>
#include <iterator>

#include "strategies/grouped_gemm/host/plain_kernels.hpp"
#include "strategies/grouped_gemm/rows/candidates.hpp"
#include "strategies/grouped_gemm/rows/host/work.hpp"
#include "strategies/grouped_gemm/rows/obstacles.hpp"
#include "strategies/grouped_gemm/rows/program.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

struct Rows : HopperKernels<Rows> {
  using Config = rows::Config;
  static constexpr std::string_view name = "rows";
  static constexpr std::string_view summary =
      "for many tokens of 16 bits or FP8 an expert, as rows of the matrix unit; two warpgroups take tiles by turns";

  static const KnobTable<Config>& knob_table() { return rows::knob_table(); }
  static Config numbers(const ProductProblem& problem, const Knobs& knobs) {
    return {.numerics = asked_numerics(knobs),
            .operand = operand(Config{}, problem),
            .output_scaling = dual_gemm::scaling_of(problem.out),
            .matrices = problem.activation ? 2 : 1};
  }
  /// Sums of the usual tile do not fit twice, nor has it all outputs that share a scale.
  static Config usual(const ProductProblem& problem, const Knobs& knobs) {
    const Config config = numbers(problem, knobs);
    return promotes(config) || config.output_scaling == Scaling::block
               ? rows::with_tile(config, rows::shapes_for(config).front())
               : Config{};
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Knobs& knobs) {
    const Config config = numbers(problem, knobs);
    const std::vector<rows::TileShape> shapes = rows::tile_shapes_for(config, problem.rows);
    std::vector<Config> found;
    std::transform(shapes.begin(), shapes.end(), std::back_inserter(found),
                   [&](const rows::TileShape& shape) { return rows::with_tile(config, shape); });
    return found;
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return rows::infeasible_reasons(problem, config, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) { return rows::work(problem, config); }
  static PlainKernel kernel(const ProductProblem& problem, const Config& config) {
    return {.strategy = name,
            .knobs = knob_table().knobs(config),
            .work = work(problem, config),
            .program = rows::program(config),
            .expression = rows::kernel_expression(config),
            .operand = config.operand,
            .token_scaling = config.token_scaling,
            .weight_scaling = config.weight_scaling,
            .matrices = config.matrices,
            .tile_widths = rows::tile_widths_of(config),
            .tile_outputs = rows::tile_outputs(config),
            .boxes = boxes_of(rows::slot_layout(config), rows::tile_widths_of(config)),
            .block = block_of(rows::shape_of(config), 1, problem.experts),
            .dependent_launch = config.dependent_launch,
            .expected = wgmma_products(config.operand, rows::slot_layout(config), 1)};
  }
  static int outputs(const Config& config) { return rows::tile_outputs(config); }
  static std::vector<Config> default_configs() { return {}; }
  static const auto& small_configs() { return rows::small_config_list; }
};

}  // namespace

const Strategy<ProductProblem>& rows_strategy() {
  static const KernelStrategy<Rows> strategy;
  return strategy;
}

}  // namespace thresher::strategies::grouped_gemm
