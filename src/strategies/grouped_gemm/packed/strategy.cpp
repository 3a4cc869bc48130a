#include "strategies/grouped_gemm/packed/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "strategies/dual_gemm/packed/obstacles.hpp"
#include "strategies/grouped_gemm/host/kernel_strategy.hpp"
#include "strategies/grouped_gemm/packed/candidates.hpp"
#include "strategies/grouped_gemm/packed/host/work.hpp"
#include "strategies/grouped_gemm/packed/launch.hpp"
#include "strategies/grouped_gemm/packed/obstacles.hpp"
#include "strategies/grouped_gemm/packed/program.hpp"

namespace thresher::strategies::grouped_gemm {
namespace packed {
namespace {

struct Packed {
  using Config = packed::Config;
  static constexpr std::string_view name = "packed";
  static constexpr std::string_view summary =
      "NVFP4 weights of all experts, packed once, made into the matrix unit's operand in registers";

  static const KnobTable<Config>& knob_table() { return packed::knob_table(); }
  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    return weights::unsupported_reason(problem.a, problem.b, device);
  }

  static bool quantizes_in_second_pass(const ProductProblem&) { return true; }

  static Number operand(const Config& config, const ProductProblem& problem) {
    return config.numerics == Numerics::exact && problem.a == Format::bf16 ? Number::bf16 : Number::fp16;
  }
  /// Tokens of the format that the kernel reads as it lies, or NVFP4.
  static OperandFormats formats(const Config& config) {
    return {config.operand == Number::bf16 ? Format::bf16 : Format::nvfp4, Format::nvfp4};
  }

  static std::vector<Config> candidates(const ProductProblem& problem, const Knobs& knobs) {
    const auto tiles = expert_tiles(asked_numerics(knobs), problem.activation ? 2 : 1);
    std::vector<Config> found;
    std::copy_if(tiles.begin(), tiles.end(), std::back_inserter(found), [&](const Config& tile) {
      return tile.block_tokens <= 128 || problem.rows > 128;  // a smaller tile holds fewer
    });
    return found;
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return packed::infeasible_reasons(problem, config, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) { return packed::work(problem, config); }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, config, device.multiprocessors);
  }

  static SampleExtents multi_tile_sample(const Config& config) {
    const auto slot_k = config.blocks_per_slot * static_cast<std::int64_t>(weight_block_k(config.numerics));
    return {.experts = 5,
            .rows = 2 * config.block_tokens + 21,
            .n = tile_outputs(config) + 5,
            .k = slot_k * (config.stages + 1) + 16};
  }
  static SampleExtents least(const Config&) { return {.experts = 3, .rows = 2, .n = 1, .k = 16}; }
  static const auto& default_configs() { return default_config_list; }
  static const auto& small_configs() { return small_config_list; }
};

}  // namespace
}  // namespace packed

const Strategy<ProductProblem>& packed_strategy() {
  static const KernelStrategy<packed::Packed> strategy;
  return strategy;
}

}  // namespace thresher::strategies::grouped_gemm
