#pragma once
/// What the kernels of 16-bit operands have in common as KernelStrategy asks for it. `Own` has the unit that it
/// multiplies on and kernel(problem, config), what is launched.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "pipeline/grouped/tensor_groups.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/grouped_gemm/device/slot_layout.hpp"
#include "strategies/grouped_gemm/host/kernel_strategy.hpp"
#include "strategies/grouped_gemm/host/plain_call.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::grouped_gemm {

inline PlainBoxes boxes_of(const SlotLayout& slots, const pipeline::Rungs& rungs) {
  return {slots.swizzle(), slots.weight_rows, pipeline::many_token_rows(rungs)};
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
/// Of a kernel whose machine code holds at the least so many products.
inline Expectations wgmma_products(int least) {
  Expectations expected;
  expected.matrix_kind = "HGMMA";
  expected.min_matrix_instructions = least;
  expected.min_tma_loads = 3;
  return expected;
}

template <class Own>
struct PlainKernels {
  static std::optional<std::string> not_made_for(const GroupedProblem& problem, const DeviceSpec& device) {
    if (device.matrix_unit != Own::unit || problem.a != problem.b || !dual_gemm::is_16_bit(problem.a)) {
      return fmt::format("strategy {} takes fp16 with fp16 or bf16 with bf16 on a {} GPU, not {} with {} on {}",
                         Own::name, Own::unit == MatrixUnit::wgmma ? "Hopper" : "Blackwell", thresher::name(problem.a),
                         thresher::name(problem.b), device.name);
    }
    return std::nullopt;
  }

  template <class Config>
  static auto operand(const Config&, const GroupedProblem& problem) {
    return dual_gemm::number_of(problem.a);
  }
  template <class Config>
  static OperandFormats formats(const Config& config) {
    return {dual_gemm::format_of(config.operand), dual_gemm::format_of(config.operand)};
  }

  template <class Config>
  static PlannedCall plan(const GroupedProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, Own::kernel(problem, config), device.multiprocessors);
  }
};

/// Those that multiply with wgmma. `Own` has outputs(config), of a tile.
template <class Own>
struct HopperKernels : PlainKernels<Own> {
  static constexpr MatrixUnit unit = MatrixUnit::wgmma;

  template <class Config>
  static SampleExtents beyond_a_tile(const Config& config) {
    return {.experts = 5,
            .rows = 2 * config.block_tokens + 21,
            .n = Own::outputs(config) + 8,
            .k = config.block_k * (config.stages + 1) + 8};
  }
  template <class Config>
  static SampleExtents least(const Config&) {
    return {.experts = 3, .rows = 2, .n = 8, .k = 8};
  }
};

}  // namespace thresher::strategies::grouped_gemm
