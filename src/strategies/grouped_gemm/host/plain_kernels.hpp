#pragma once
/// What the kernels of plain operands have in common as KernelStrategy asks for it. `Own` has the unit that it
/// multiplies on, takes_fp8(format) with `fp8_sentence`, and kernel(problem, config), what is launched.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "core/integers.hpp"
#include "pipeline/grouped/tensor_groups.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/gemm/device/slot_layout.hpp"
#include "strategies/gemm/plain_call.hpp"
#include "strategies/grouped_gemm/host/kernel_strategy.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::grouped_gemm {

inline PlainBlock block_of(const pipeline::TensorShape& shape, std::int64_t experts) {
  return {.threads = pipeline::threads(shape),
          .cluster = pipeline::cluster_blocks(shape),
          .shared_bytes = pipeline::grouped_shared_bytes(shape, static_cast<std::uint32_t>(experts)),
          .profiled = shape.profiled};
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
    PlannedCall call = planned_call(problem, Own::kernel(problem, config), device.multiprocessors);
    call.strategy = Own::name;
    call.knobs = Own::knob_table().knobs(config);
    call.work = Own::work(problem, config);
    return call;
  }
};

}  // namespace thresher::strategies::grouped_gemm
