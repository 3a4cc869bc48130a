#pragma once
/// What the kernels of plain operands have in common as KernelStrategy asks for it. `Own` has the unit that it
/// multiplies on, takes_fp8(format) with `fp8_sentence`, and kernel(problem, config), what is launched.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "core/integers.hpp"
#include "pipeline/grouped/tensor_groups.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/grouped_gemm/device/slot_layout.hpp"
#include "strategies/grouped_gemm/host/kernel_strategy.hpp"
#include "strategies/grouped_gemm/host/plain_call.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::grouped_gemm {

inline PlainBoxes boxes_of(const SlotLayout& slots, const pipeline::TileWidths& tile_widths) {
  return {slots.swizzle(), slots.weight_rows, pipeline::many_token_rows(tile_widths)};
}
inline PlainBlock block_of(const pipeline::Shape& shape, int resident, std::int64_t experts) {
  const int threads = pipeline::threads(shape);
  return {.threads = threads,
          .resident = resident,
          .shared_bytes = pipeline::grouped_shared_bytes(shape, static_cast<std::uint32_t>(experts)),
          .registers = registers_at_launch(threads * resident, shape.loader_registers, shape.math_registers),
          .profiled = shape.profiled};
}
inline PlainBlock block_of(const pipeline::TensorShape& shape, std::int64_t experts) {
  return {.threads = pipeline::threads(shape),
          .cluster = pipeline::cluster_blocks(shape),
          .shared_bytes = pipeline::grouped_shared_bytes(shape, static_cast<std::uint32_t>(experts)),
          .profiled = shape.profiled};
}
/// Of a kernel that multiplies a slot in so many tiles of 64 rows, 32 bytes along K each.
inline Expectations wgmma_products(dual_gemm::Number operand, const SlotLayout& slots, int tiles) {
  Expectations expected;
  expected.matrix_kind = operand == dual_gemm::Number::e4m3 ? "QGMMA" : "HGMMA";
  expected.min_matrix_instructions = tiles * slots.panels() * slots.row_bytes() / product_row_bytes;
  expected.min_tma_loads = 3;
  return expected;
}

template <class Own>
struct PlainKernels {
  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    const bool takes = (problem.a == problem.b && dual_gemm::is_16_bit(problem.a)) ||
                       (Own::takes_fp8(problem.a) && Own::takes_fp8(problem.b));
    if (device.matrix_unit == Own::unit && takes) {
      return std::nullopt;
    }
    return fmt::format("strategy {} takes fp16 with fp16 or bf16 with bf16 on a {} GPU, not {} with {} on {}; {}",
                       Own::name, Own::unit == MatrixUnit::wgmma ? "Hopper" : "Blackwell", thresher::name(problem.a),
                       thresher::name(problem.b), device.name, Own::fp8_sentence);
  }

  template <class Config>
  static auto operand(const Config&, const ProductProblem& problem) {
    return dual_gemm::number_of(problem.a);
  }
  template <class Config>
  static OperandFormats formats(const Config& config) {
    return {dual_gemm::format_of(config.operand, config.token_scaling),
            dual_gemm::format_of(config.operand, config.weight_scaling)};
  }

  template <class Config>
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, Own::kernel(problem, config), device.multiprocessors);
  }
};

/// Those that multiply with wgmma. `Own` has outputs(config), of a tile.
template <class Own>
struct HopperKernels : PlainKernels<Own> {
  static constexpr MatrixUnit unit = MatrixUnit::wgmma;
  static constexpr std::string_view fp8_sentence = "it takes FP8 with FP8 too, whatever its scales are of";
  static constexpr bool takes_fp8(Format format) { return dual_gemm::is_fp8(format); }

  /// Where the sums are, scales are given, or found of 128 outputs.
  static bool quantizes_in_second_pass(const ProductProblem& problem) {
    return problem.out != Format::fp8_tensor && problem.out != Format::fp8_block;
  }

  template <class Config>
  static SampleExtents multi_tile_sample(const Config& config) {
    return {.experts = 5,
            .rows = 2 * config.block_tokens + 21,
            .n = of_whole_scales(config, Own::outputs(config) + 8),
            .k = config.block_k * (config.stages + 1) + ragged(config)};
  }
  template <class Config>
  static SampleExtents least(const Config& config) {
    return {.experts = 3, .rows = 2, .n = of_whole_scales(config, 8), .k = ragged(config)};
  }

 private:
  /// At least so many outputs, as many as the format takes.
  template <class Config>
  static std::int64_t of_whole_scales(const Config& config, std::int64_t outputs) {
    const Format out = dual_gemm::format_of(config.output, config.output_scaling);
    return round_up(outputs, std::int64_t{format_traits(out).n_multiple});
  }
  /// Along K, 16 bytes: as little as there can be.
  template <class Config>
  static std::int64_t ragged(const Config& config) {
    return 16 / element_bytes(config.operand);
  }
};

}  // namespace thresher::strategies::grouped_gemm
