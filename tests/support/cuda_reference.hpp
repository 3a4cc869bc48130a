#pragma once
/// The float64 definition on a GPU: the same function as reference::dual_gemm, fast enough for large problems.
#include "ops/cuda_programs.hpp"
#include "ops/packed_product.hpp"
#include "ops/validate_product.hpp"
#include "runtime/driver.hpp"
#include "strategies/gemm/reference/params.hpp"
#include "strategies/gemm/reference/program.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/error.hpp"

namespace thresher::test::on_gpu {

namespace device_code = strategies::gemm::reference;

inline device_code::OperandFormat format_code(Format format) {
  switch (format) {
    case Format::fp16: return device_code::OperandFormat::fp16;
    case Format::bf16: return device_code::OperandFormat::bf16;
    case Format::nvfp4: return device_code::OperandFormat::nvfp4;
    default: break;
  }
  throw Error(ErrorCode::internal, "the definition takes no operand in " + std::string(name(format)));
}

inline device_code::Operand operand(const Tensor& matrix) {
  return {.values = reinterpret_cast<std::uintptr_t>(matrix.data),
          .row_stride = matrix.strides[0],
          .scales = reinterpret_cast<std::uintptr_t>(matrix.scales.data),
          .global_scale = reinterpret_cast<std::uintptr_t>(matrix.global_scale),
          .format = format_code(matrix.format),
          .scales_blocked = matrix.scales.layout == ScaleLayout::blocked ? 1U : 0U};
}

inline unsigned blocks(std::int64_t extent) {
  return static_cast<unsigned>((extent + device_code::tile - 1) / device_code::tile);
}

/// Enqueues out[m, n] = the definition, float64, not rounded to the output format. Operands and `out` are in the memory
/// of one GPU. Operands are as validate_run and validate_weights demand, at any alignment. The first call on a GPU
/// compiles.
inline void reference_dual_gemm(Stream stream, const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                                const Tensor& b2_up, double* out) {
  ops::validate(problem);
  ops::validate_weights(problem, b1_gate, b2_up, a.device);
  if (problem.m == 0 || problem.n == 0) {
    return;
  }
  const int ordinal = a.device.ordinal;
  ops::require_matrix_on_gpu(a, ordinal, "a");
  ops::require_matrix_on_gpu(b1_gate, ordinal, "b1 (gate)");
  ops::require_matrix_on_gpu(b2_up, ordinal, "b2 (up)");
  runtime::require_on_gpu(out, ordinal, "out");
  constexpr std::int64_t max_rows = 65535 * static_cast<std::int64_t>(device_code::tile);
  if (problem.m > max_rows) {
    throw Error(ErrorCode::unsupported, "the definition takes at most " + std::to_string(max_rows) +
                                            " rows of a at once, not " + std::to_string(problem.m) + ": split them");
  }
  device_code::Parameters parameters{};
  parameters.a = operand(a);
  parameters.b1_gate = operand(b1_gate);
  parameters.b2_up = operand(b2_up);
  parameters.out = reinterpret_cast<std::uintptr_t>(out);
  parameters.m = static_cast<std::uint32_t>(problem.m);
  parameters.n = static_cast<std::uint32_t>(problem.n);
  parameters.k = static_cast<std::uint32_t>(problem.k);
  parameters.activation = static_cast<std::uint32_t>(problem.activation.kind);
  parameters.alpha = problem.activation.alpha;
  parameters.limit = problem.activation.limit;
  parameters.up_offset = problem.activation.up_offset;
  const runtime::Kernel kernel =
      ops::load_program(ordinal, device_code::program()).kernel(device_code::kernel_expression());
  runtime::LaunchConfig config;
  config.grid = {blocks(problem.n), blocks(problem.m), 1};
  config.block.x = device_code::threads;
  config.dynamic_shared_bytes = device_code::shared_bytes;
  config.stream = stream;
  kernel.launch_with(config, parameters);
}

}  // namespace thresher::test::on_gpu
