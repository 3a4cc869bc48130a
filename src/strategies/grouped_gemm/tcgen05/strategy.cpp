#include "strategies/grouped_gemm/tcgen05/strategy.hpp"

#include <fmt/format.h>

#include "strategies/grouped_gemm/host/kernel_strategy.hpp"
#include "strategies/grouped_gemm/tcgen05/candidates.hpp"
#include "strategies/grouped_gemm/tcgen05/host/work.hpp"
#include "strategies/grouped_gemm/tcgen05/launch.hpp"
#include "strategies/grouped_gemm/tcgen05/obstacles.hpp"
#include "strategies/grouped_gemm/tcgen05/program.hpp"

namespace thresher::strategies::grouped_gemm {
namespace tcgen05 {
namespace {

struct Tcgen05 {
  using Config = tcgen05::Config;
  static constexpr std::string_view name = "tcgen05";
  static constexpr std::string_view summary =
      "NVFP4 tokens and NVFP4 weights of all experts, multiplied as they are on Blackwell, with sums in tensor memory";

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
    return tcgen05::candidates(problem);
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return tcgen05::infeasible_reasons(problem, config, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) { return tcgen05::work(problem, config); }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, config, device.multiprocessors);
  }

  static SampleExtents multi_tile_sample(const Config& config) {
    return {.experts = 5,
            .rows = config.block_tokens * 3 / 2 + 21,
            .n = static_cast<std::int64_t>(tile_outputs(config)) + 5,
            .k = static_cast<std::int64_t>(weights::slot_k) * config.split_k * (config.stages + 1) + 16};
  }
  static SampleExtents least(const Config& config) {
    return {.experts = 3, .rows = 2, .n = 1, .k = std::int64_t{weights::slot_k} * (config.split_k - 1) + 16};
  }
  static const auto& default_configs() { return default_config_list; }
  static const auto& small_configs() { return small_config_list; }
};

}  // namespace
}  // namespace tcgen05

const Strategy<ProductProblem>& tcgen05_strategy() {
  static const KernelStrategy<tcgen05::Tcgen05> strategy;
  return strategy;
}

}  // namespace thresher::strategies::grouped_gemm
