#pragma once
/// What the kernels of 16-bit operands have in common as KernelStrategy asks for it. `Own` has outputs(config), of a
/// tile, and kernel(problem, config), what is launched.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "strategies/grouped_gemm/host/kernel_strategy.hpp"
#include "strategies/grouped_gemm/host/sixteen_bit_call.hpp"

namespace thresher::strategies::grouped_gemm {

template <class Own>
struct SixteenBitKernels {
  static std::optional<std::string> not_made_for(const GroupedProblem& problem, const DeviceSpec& device) {
    if (device.matrix_unit != MatrixUnit::wgmma || problem.a != problem.b || !dual_gemm::is_16_bit(problem.a)) {
      return fmt::format("strategy {} takes fp16 with fp16 or bf16 with bf16 on a Hopper GPU, not {} with {} on {}",
                         Own::name, thresher::name(problem.a), thresher::name(problem.b), device.name);
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

  template <class Config>
  static SampleExtents beyond_a_tile(const Config& config) {
    return {.experts = 5,
            .rows = 2 * config.block_tokens + 21,
            .n = Own::outputs(config) + 8,
            .k = config.block_k * (config.stages + 1) + 8};
  }
  static constexpr SampleExtents least{.experts = 3, .rows = 2, .n = 8, .k = 8};
};

}  // namespace thresher::strategies::grouped_gemm
