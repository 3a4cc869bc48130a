#include "strategies/quantize/call.hpp"

#include <vector>

#include "cpu/parallel.hpp"
#include "formats/decode.hpp"
#include "formats/quantize_row.hpp"
#include "strategies/gemm/device/quantize_rows.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/launch_tools.hpp"

namespace thresher::strategies::quantize {
namespace {

void quantize_on_cpu(const Tensor& x, const Tensor& out, int threads) {
  cpu::parallel_for(cpu::resolve_threads(threads), x.shape[0], [&](std::int64_t row, int) {
    std::vector<float> values(static_cast<std::size_t>(x.shape[1]));
    formats::decode_row(x, row, std::span<float>(values));
    formats::quantize_row(out, row, values);
  });
}

KernelLaunch launch_of(const QuantizeProblem& problem, std::size_t x_at, std::size_t out_at) {
  KernelLaunch launch = gemm::quantize_launch(problem.x, problem.out);
  launch.accesses = {{Access::Memory::tensor, x_at, Access::Use::depends_on_previous},
                     {Access::Memory::tensor, out_at, Access::Use::writes},
                     {Access::Memory::scales, out_at, Access::Use::writes}};
  launch.bind = [x_at, out_at](const CallTensors& call, LaunchArguments& arguments) {
    const Tensor& x = call.tensors[x_at];
    const Tensor& out = call.tensors[out_at];
    gemm::QuantizeRowsParams params = gemm::quantize_params(out);
    params.values = {device_address(x.data)};
    params.values_stride = static_cast<std::uint64_t>(x.strides[0] * bits(x.format) / 8);
    gemm::bind_quantize(params, out.format, arguments);
    return true;
  };
  return launch;
}

}  // namespace

Step quantize_step(const QuantizeProblem& problem, DeviceKind device, std::size_t x, std::size_t out, int threads) {
  if (device == DeviceKind::cuda) {
    return launch_of(problem, x, out);
  }
  return HostCall{"quantize the rows", [x, out, threads](const CallTensors& of) {
                    quantize_on_cpu(of.tensors[x], of.tensors[out], threads);
                  }};
}

PlannedCall quantize_call(const QuantizeProblem& problem, DeviceKind device, int threads) {
  PlannedCall call;
  call.strategy = "quantize";
  call.steps.push_back(quantize_step(problem, device, x_index, out_index, threads));
  if (device == DeviceKind::cpu) {
    return call;
  }
  const double value_bytes = (bits(problem.x) + format_traits(problem.out).stored_bits()) / 8;
  call.work.parts = {
      MemoryPass{.title = "quantizing the rows",
                 .bytes = static_cast<double>(problem.rows) * static_cast<double>(problem.columns) * value_bytes}};
  call.why = "one launch reads every value once, or twice for a scale of its row";
  return call;
}

std::vector<PlannedCall> built_in() {
  std::vector<PlannedCall> all;
  for (const Format x : {Format::fp16, Format::bf16}) {
    for (const Format out : {Format::fp8_row, Format::fp8_block}) {
      all.push_back(quantize_call({.rows = 1, .columns = 16, .x = x, .out = out}, DeviceKind::cuda));
    }
  }
  return all;
}

}  // namespace thresher::strategies::quantize
