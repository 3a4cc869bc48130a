#include "thresher/quantize.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/tensor_checks.hpp"
#include "runtime/driver.hpp"
#include "strategies/quantize/call.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace ops {
namespace {

void check_quantize(const QuantizeProblem& problem) {
  if (problem.x != Format::fp16 && problem.x != Format::bf16) {
    refuse("problem.x is {}, expected fp16 or bf16", name(problem.x));
  }
  if (problem.out != Format::fp8_row && problem.out != Format::fp8_block) {
    refuse("problem.out is {}, expected fp8_row or fp8_block", name(problem.out));
  }
  check_extent("rows", problem.rows, 0);
  check_extent("columns", problem.columns, 1);
  check_multiples("columns", problem.columns, {problem.out});
}

void check_quantize_run(const QuantizeProblem& problem, const Tensor& x, const Tensor& out, DeviceId device) {
  const std::int64_t rows = x.rank == 2 ? x.shape[0] : 0;
  if (rows < 0 || rows > problem.rows) {
    refuse("x has {} rows, expected 0 to {}, which the plan was made for", rows, problem.rows);
  }
  check_matrix("x", x, problem.x, rows, problem.columns, device, OperandRole::tokens);
  check_alignment("x", x, element_alignment(problem.x));
  check_matrix("out", out, problem.out, rows, problem.columns, device, OperandRole::tokens);
  check_scales_not_overlapping(out, "out");
  check_not_overlapping(out, "x", x, "out");
}

}  // namespace
}  // namespace ops

class Quantize::Backend {
 public:
  Backend(const Device& device, const QuantizeProblem& problem, int threads)
      : problem_(problem),
        device_(device.id()),
        call_(device_, strategies::quantize::quantize_call(problem, device.kind(), threads)) {}

  [[nodiscard]] const QuantizeProblem& problem() const noexcept { return problem_; }

  void run(Stream stream, const Tensor& x, const Tensor& out) const {
    ops::check_quantize_run(problem_, x, out, device_);
    if (x.shape[0] == 0) {
      return;
    }
    if (device_.kind == DeviceKind::cuda) {
      runtime::require_on_gpu(x.data, device_.ordinal, "x");
      runtime::require_on_gpu(out.data, device_.ordinal, "out");
      runtime::require_on_gpu(out.scales.data, device_.ordinal, "out.scales");
    }
    const std::array<Tensor, strategies::quantize::tensor_count> tensors{x, out};
    call_.run(stream, {tensors});
  }

 private:
  QuantizeProblem problem_;
  DeviceId device_;
  ops::DeviceCall call_;
};

Quantize plan(const Device& device, const QuantizeProblem& problem, const QuantizeOptions& options) {
  ops::check_quantize(problem);
  ops::check_threads(options.threads);
  if (const DeviceSpec spec = ops::spec_of(device);
      device.kind() == DeviceKind::cuda && spec.matrix_unit == MatrixUnit::none) {
    throw Error(ErrorCode::unsupported,
                fmt::format("quantizing runs on the CPU and on GPUs of compute capability 9.0 and 10.x, not on {}",
                            device.name()));
  }
  return Quantize(std::make_shared<const Quantize::Backend>(device, problem, options.threads));
}

void Quantize::run(Stream stream, const Tensor& x, const Tensor& out) const { backend_->run(stream, x, out); }

const QuantizeProblem& Quantize::problem() const noexcept { return backend_->problem(); }

}  // namespace thresher
