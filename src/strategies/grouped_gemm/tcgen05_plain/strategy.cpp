#include "strategies/grouped_gemm/tcgen05_plain/strategy.hpp"

#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/grouped_gemm/host/plain_kernels.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/candidates.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/host/work.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/obstacles.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/program.hpp"

namespace thresher::strategies::grouped_gemm {
namespace tcgen05_plain {
namespace {

/// A slot of the ring: four products of each matrix, 32 bytes along K each.
Expectations expectations(const Config& config) {
  Expectations expected;
  expected.matrix_kind = config.operand == Number::e4m3 ? "UTCQMMA" : "UTCHMMA";
  expected.min_matrix_instructions = config.matrices * static_cast<int>(slot_products);
  expected.min_tma_loads = config.matrices + 1;
  expected.tensor.products = expected.min_matrix_instructions;
  expected.tensor.scale_copies = 0;
  expected.tensor.is_pair = config.blocks == 2;
  expected.tensor.min_commits = 2;
  // Chunks of two widths, each once in the code, of each matrix; where K is split, of each width that tiles have.
  constexpr std::int64_t warp_lanes = 32;
  expected.tensor.loaded_bytes =
      warp_lanes * config.matrices * pipeline::loaded_columns(shape_of(config), tile_widths_of(config)) * sizeof(float);
  return expected;
}

/// Along K, 16 bytes: as little as there can be.
std::int64_t ragged(const Config& config) { return 16 / element_bytes(config.operand); }

struct Plain : PlainKernels<Plain> {
  using Config = tcgen05_plain::Config;
  static constexpr std::string_view name = "tcgen05_plain";
  static constexpr std::string_view summary =
      "16-bit or FP8 tokens and weights of all experts where they lie on Blackwell's tensor cores, sums in tensor "
      "memory";
  static constexpr MatrixUnit unit = MatrixUnit::tcgen05;

  static constexpr std::string_view fp8_sentence = "it takes fp8_tensor and fp8_row with either too";
  static constexpr bool takes_fp8(Format format) { return dual_gemm::is_plain_fp8(format); }

  static const KnobTable<Config>& knob_table() { return tcgen05_plain::knob_table(); }
  static std::vector<Config> candidates(const ProductProblem& problem, const Knobs&) {
    return tcgen05_plain::candidates(problem);
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    return tcgen05_plain::infeasible_reasons(problem, config, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config) {
    return tcgen05_plain::work(problem, config);
  }
  static PlainKernel kernel(const ProductProblem& problem, const Config& config) {
    return {.program = program(config),
            .expression = kernel_expression(config),
            .operand = config.operand,
            .token_scaling = config.token_scaling,
            .weight_scaling = config.weight_scaling,
            .matrices = config.matrices,
            .tile_widths = tile_widths_of(config),
            .tile_outputs = tile_outputs(config),
            .boxes = {machine::Swizzle::b128, static_cast<int>(block_outputs), pipeline::many_tensor_rows},
            .block = block_of(shape_of(config), problem.experts),
            .dependent_launch = config.dependent_launch,
            .expected = expectations(config)};
  }

  static SampleExtents multi_tile_sample(const Config& config) {
    return {.experts = 5,
            .rows = config.block_tokens * 3 / 2 + 21,
            .n = tile_outputs(config) + 8,
            .k = std::int64_t{slot_k(config)} * config.split_k * (config.stages + 1) + ragged(config)};
  }
  static SampleExtents least(const Config& config) {
    return {.experts = 3, .rows = 2, .n = 8, .k = std::int64_t{slot_k(config)} * (config.split_k - 1) + ragged(config)};
  }
  static const auto& default_configs() { return default_config_list; }
  static const auto& small_configs() { return small_config_list; }
};

}  // namespace
}  // namespace tcgen05_plain

const Strategy<ProductProblem>& tcgen05_plain_strategy() {
  static const KernelStrategy<tcgen05_plain::Plain> strategy;
  return strategy;
}

}  // namespace thresher::strategies::grouped_gemm
