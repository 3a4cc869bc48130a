#include "strategies/dual_gemm/packed/strategy.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/host/kernel_strategy.hpp"
#include "strategies/dual_gemm/packed/candidates.hpp"
#include "strategies/dual_gemm/packed/host/work.hpp"
#include "strategies/dual_gemm/packed/launch.hpp"
#include "strategies/dual_gemm/packed/obstacles.hpp"
#include "strategies/dual_gemm/packed/program.hpp"

namespace thresher::strategies::dual_gemm {
namespace packed {
namespace {

struct Packed {
  using Config = packed::Config;
  static constexpr std::string_view name = "packed";
  static constexpr std::string_view summary =
      "NVFP4 weights, packed once, made into the matrix unit's operand in registers";
  static constexpr bool quantizes_in_second_pass = true;
  static Role role(const ProductProblem&) { return Role::competes; }

  static const KnobTable<Config>& knob_table() { return packed::knob_table(); }
  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    return packed::unsupported_reason(problem.a, problem.b, device);
  }
  static Number operand(const Config& config, const ProductProblem& problem) {
    return config.numerics == Numerics::exact && problem.a == Format::bf16 ? Number::bf16 : Number::fp16;
  }
  static OperandFormats formats(const Config& config) {
    return {config.operand == Number::bf16 ? Format::bf16 : Format::nvfp4, Format::nvfp4};
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Knobs& knobs) {
    const std::string* numerics = knobs.find("numerics");
    const bool is_fast = numerics != nullptr && *numerics == "fast";
    return packed::candidates(is_fast ? Numerics::fast : Numerics::exact, problem.rows);
  }
  static std::optional<Config> completed(const Config& config, const Knobs&) { return config; }
  static std::vector<std::string> infeasible_reasons(const ProductProblem&, const Config& config,
                                                     const DeviceSpec& device) {
    return packed::infeasible_reasons(config, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) { return packed::work(problem, config); }
  static PlannedCall plan(const ProductProblem& problem, const Config& config) { return planned_call(problem, config); }
  static pipeline::Shape profile_shape(const Config& config) { return shape_of(config); }

  /// The ring's slots and one more for each half of a split: few enough to be quick.
  static ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config, std::int64_t rest) {
    const auto slot_k = config.blocks_per_slot * static_cast<std::int64_t>(weight_block_k(config));
    return with_extents(problem, config.block_tokens + 1, tile_outputs(config) + 5,
                        slot_k * (config.split_k * config.stages + 1) + rest);
  }
  /// With such a rest tokens of 16 bits are padded first; without one they are read where they lie.
  static constexpr std::int64_t ragged = 16;
  static std::int64_t min_k(const Config&) { return ragged; }
  static const auto& default_configs() { return default_config_list; }
  static const auto& small_configs() { return small_config_list; }
};

}  // namespace
}  // namespace packed

const Strategy<ProductProblem>& packed_strategy() {
  static const KernelStrategy<packed::Packed> strategy;
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
