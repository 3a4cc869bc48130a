#include "strategies/grouped_gemm/columns/strategy.hpp"

#include <algorithm>
#include <iterator>

#include "strategies/grouped_gemm/columns/candidates.hpp"
#include "strategies/grouped_gemm/columns/host/work.hpp"
#include "strategies/grouped_gemm/columns/obstacles.hpp"
#include "strategies/grouped_gemm/columns/program.hpp"
#include "strategies/grouped_gemm/host/plain_kernels.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

struct Columns : HopperKernels<Columns> {
  using Config = columns::Config;
  static constexpr std::string_view name = "columns";
  static constexpr std::string_view summary =
      "16-bit or FP8 weights as rows of the matrix unit, tokens as its columns, as many as a group has left";

  static const KnobTable<Config>& knob_table() { return columns::knob_table(); }
  static Config numbers(const ProductProblem& problem, const Knobs& knobs) {
    return {.numerics = asked_numerics(knobs), .operand = operand(Config{}, problem)};
  }
  /// Sums of the usual tile do not fit twice.
  static Config usual(const ProductProblem& problem, const Knobs& knobs) {
    const Config config = numbers(problem, knobs);
    return promotes(config) ? columns::with_tile(config, columns::promoted_tile_shapes.front()) : Config{};
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Knobs& knobs) {
    const Config config = numbers(problem, knobs);
    const std::vector<columns::TileShape> shapes = columns::tile_shapes_for(config, problem.rows);
    std::vector<Config> found;
    std::transform(shapes.begin(), shapes.end(), std::back_inserter(found),
                   [&](const columns::TileShape& shape) { return columns::with_tile(config, shape); });
    return found;
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return columns::infeasible_reasons(problem, config, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) { return columns::work(problem, config); }
  static PlainKernel kernel(const ProductProblem& problem, const Config& config) {
    return {.strategy = name,
            .knobs = knob_table().knobs(config),
            .work = work(problem, config),
            .program = columns::program(config),
            .expression = columns::kernel_expression(config),
            .operand = config.operand,
            .token_scaling = config.token_scaling,
            .weight_scaling = config.weight_scaling,
            .matrices = config.matrices,
            .tile_widths = columns::tile_widths_of(config),
            .tile_outputs = columns::tile_outputs(config),
            .boxes = boxes_of(columns::slot_layout(config), columns::tile_widths_of(config)),
            .block = block_of(columns::shape_of(config), config.blocks_resident, problem.experts),
            .dependent_launch = config.dependent_launch,
            // Two of 64 rows of weights, of each width that tiles have.
            .expected = wgmma_products(config.operand, columns::slot_layout(config), 2)};
  }
  static int outputs(const Config& config) { return columns::tile_outputs(config); }
  static const auto& default_configs() { return columns::default_config_list; }
  static const auto& small_configs() { return columns::small_config_list; }
};

}  // namespace

const Strategy<ProductProblem>& columns_strategy() {
  static const KernelStrategy<Columns> strategy;
  return strategy;
}

}  // namespace thresher::strategies::grouped_gemm
