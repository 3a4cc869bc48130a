#include "strategies/dual_gemm/tcgen05/strategy.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/host/kernel_strategy.hpp"
#include "strategies/dual_gemm/host/tensor_obstacles.hpp"
#include "strategies/dual_gemm/tcgen05/candidates.hpp"
#include "strategies/dual_gemm/tcgen05/host/work.hpp"
#include "strategies/dual_gemm/tcgen05/launch.hpp"
#include "strategies/dual_gemm/tcgen05/program.hpp"

namespace thresher::strategies::dual_gemm {
namespace tcgen05 {
namespace {

struct Tcgen05 {
  using Config = tcgen05::Config;
  static constexpr std::string_view name = "tcgen05";
  static constexpr std::string_view summary =
      "NVFP4 tokens and weights as they are on Blackwell's tensor cores, sums in tensor memory";
  static Role role(const ProductProblem&) { return Role::competes; }

  static const KnobTable<Config>& knob_table() { return tcgen05::knob_table(); }
  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    if (problem.a != Format::nvfp4 || problem.b != Format::nvfp4 || device.matrix_unit != MatrixUnit::tcgen05) {
      return fmt::format("strategy tcgen05 needs nvfp4 tokens, nvfp4 weights and a Blackwell GPU, not {} with {} on {}",
                         thresher::name(problem.a), thresher::name(problem.b), device.name);
    }
    return std::nullopt;
  }
  static OperandFormats formats(const Config&) { return {Format::nvfp4, Format::nvfp4}; }
  static std::vector<Config> candidates(const ProductProblem& problem, const Knobs&) {
    return tcgen05::candidates(problem.rows);
  }
  static std::optional<Config> completed(const Config& config, const Knobs& knobs) {
    return with_stages(config, knobs);
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return tensor_infeasible_reasons(shape_of(config), problem.k, slot_k, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) { return tcgen05::work(problem, config); }
  static PlannedCall plan(const ProductProblem& problem, const Config& config) { return planned_call(problem, config); }
  static pipeline::Shape profile_shape(const Config& config) { return pipeline::profile_shape(shape_of(config)); }

  /// The ring's slots and one more for each part of a split: few enough to be quick. A persistent block has more than
  /// one tile.
  static ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config, std::int64_t rest) {
    const std::int64_t outputs = tile_outputs(config);
    return with_extents(problem, config.block_tokens + 1, config.persistent ? 2 * outputs + 5 : outputs + 5,
                        std::int64_t{slot_k} * (config.split_k * config.stages + 1) + rest);
  }
  static constexpr std::int64_t ragged = 16;
  static std::int64_t min_k(const Config& config) {
    return config.split_k == 1 ? ragged : std::int64_t{slot_k} + ragged;
  }
  static std::vector<Config> default_configs() { return tcgen05::default_configs(); }
  static const auto& small_configs() { return small_config_list; }
};

}  // namespace
}  // namespace tcgen05

const Strategy<ProductProblem>& tcgen05_strategy() {
  static const KernelStrategy<tcgen05::Tcgen05> strategy;
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
