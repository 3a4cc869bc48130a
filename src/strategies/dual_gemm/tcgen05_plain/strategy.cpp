#include "strategies/dual_gemm/tcgen05_plain/strategy.hpp"

#include <fmt/format.h>

#include "core/integers.hpp"
#include "strategies/dual_gemm/host/kernel_strategy.hpp"
#include "strategies/dual_gemm/host/tensor_obstacles.hpp"
#include "strategies/dual_gemm/tcgen05_plain/candidates.hpp"
#include "strategies/dual_gemm/tcgen05_plain/host/work.hpp"
#include "strategies/dual_gemm/tcgen05_plain/launch.hpp"
#include "strategies/dual_gemm/tcgen05_plain/program.hpp"

namespace thresher::strategies::dual_gemm {
namespace tcgen05_plain {
namespace {

struct Plain {
  using Config = tcgen05_plain::Config;
  static constexpr std::string_view name = "tcgen05_plain";
  static constexpr std::string_view summary =
      "16-bit or FP8 tokens and weights where they lie on Blackwell's tensor cores, sums in tensor memory";
  /// The library's products of 16 bits are known to be right on such cards; this has run on none.
  static Role role(const ProductProblem& problem) { return is_16_bit(problem.a) ? Role::by_name : Role::competes; }

  static const KnobTable<Config>& knob_table() { return tcgen05_plain::knob_table(); }
  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    const bool fits =
        (is_16_bit(problem.a) && problem.a == problem.b) || (is_plain_fp8(problem.a) && is_plain_fp8(problem.b));
    if (!fits || device.matrix_unit != MatrixUnit::tcgen05) {
      return fmt::format(
          "strategy tcgen05_plain needs fp16 with fp16, bf16 with bf16, or fp8_tensor or fp8_row with either, and a "
          "Blackwell GPU, not {} with {} on {}",
          thresher::name(problem.a), thresher::name(problem.b), device.name);
    }
    return std::nullopt;
  }
  static Number operand(const Config&, const ProductProblem& problem) { return number_of(problem.a); }
  static OperandFormats formats(const Config& config) {
    return {format_of(config.operand, config.token_scaling), format_of(config.operand, config.weight_scaling)};
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Knobs&) {
    return tcgen05_plain::candidates(problem.rows);
  }
  static std::optional<Config> completed(const Config& config, const Knobs& knobs) {
    return with_stages(config, knobs);
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return tensor_infeasible_reasons(shape_of(config), problem.k, slot_k(config), device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) {
    return tcgen05_plain::work(problem, config);
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config) { return planned_call(problem, config); }
  static pipeline::Shape profile_shape(const Config& config) { return pipeline::profile_shape(shape_of(config)); }

  /// The ring's slots and one more for each part of a split: few enough to be quick. A persistent block has more than
  /// one tile.
  static ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config, std::int64_t rest) {
    const std::int64_t outputs = tile_outputs(config);
    return with_extents(
        problem, config.block_tokens + 1, config.persistent ? 2 * outputs + 5 : outputs + 5,
        std::int64_t{slot_k(config)} * (config.split_k * config.stages + 1) + round_up(rest, row_granule(config)));
  }
  static constexpr std::int64_t ragged = 1;  ///< and up to a granule of a row
  static std::int64_t min_k(const Config& config) {
    return (config.split_k == 1 ? 0 : std::int64_t{slot_k(config)}) + row_granule(config);
  }
  /// Rows of operands end where the copy engine can tell.
  static std::int64_t row_granule(const Config& config) { return tma_alignment_bytes / element_bytes(config.operand); }
  /// Nobody has a card to run them on unasked: they are compiled where they are used.
  static std::vector<Config> default_configs() { return {}; }
  static const auto& small_configs() { return small_config_list; }
};

}  // namespace
}  // namespace tcgen05_plain

const Strategy<ProductProblem>& tcgen05_plain_strategy() {
  static const KernelStrategy<tcgen05_plain::Plain> strategy;
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
