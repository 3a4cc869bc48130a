#include "strategies/gemm/output_quantization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/integers.hpp"
#include "strategies/gemm/call.hpp"
#include "strategies/gemm/device/quantize_rows.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/work.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies::gemm {
namespace {

/// Rows begin where 16 bytes may be read.
std::int64_t values_stride(std::int64_t columns) { return round_up(columns, std::int64_t{4}); }

struct Unrounded {
  std::size_t piece = 0;
  std::size_t offset = 0;

  /// In place of C.
  [[nodiscard]] Tensor in_place_of(const Tensor& c, void* workspace) const {
    Tensor values = c;
    values.format = Format::fp32;
    values.data = static_cast<std::byte*>(workspace) + offset;
    values.scales = {};
    values.global_scale = nullptr;
    const std::int64_t stride = values_stride(values.shape[values.rank - 1]);
    values.strides[values.rank - 2] = stride;
    if (values.rank == 3) {
      values.strides[0] = values.shape[1] * stride;
    }
    return values;
  }
};

/// The product writes to the workspace what it wrote to C, the tensor `output`.
void write_unrounded(KernelLaunch& launch, const Unrounded& to) {
  launch.bind = [bind = std::move(launch.bind), to](const CallTensors& call, LaunchArguments& out) {
    std::array<Tensor, product_tensor_count> all{};
    const std::size_t count = std::min(call.tensors.size(), all.size());
    std::copy_n(call.tensors.begin(), count, all.begin());
    all[output_index] = to.in_place_of(all[output_index], call.workspace);
    return bind({std::span(all).first(count), call.workspace, call.packed}, out);
  };
  for (Access& access : launch.accesses) {
    if (access.memory == Access::Memory::tensor && access.index == output_index) {
      access = {Access::Memory::workspace, to.piece, access.use};
    }
  }
}

QuantizeRowsParams params_of(const ProductProblem& problem, const Unrounded& from, const CallTensors& call) {
  const Tensor& c = output_of(call);
  const Tensor& bounds = tensor_at(call, groups_index);
  const FinishParams finish = finish_params(problem, call);
  QuantizeRowsParams params = quantize_params(c);
  params.values = {device_address(from.in_place_of(c, call.workspace).data)};
  params.values_stride = static_cast<std::uint64_t>(values_stride(params.columns)) * sizeof(float);
  params.bounds = {device_address(bounds.data)};
  params.groups = narrow(weight_extents(gate_of(call)).experts);
  params.row_ids = finish.row_ids;
  params.ids_end = finish.ids_end;
  return params;
}

std::vector<Access> accesses_of(const ProductProblem& problem, const Unrounded& from) {
  std::vector<Access> all{{Access::Memory::workspace, from.piece, Access::Use::depends_on_previous},
                          {Access::Memory::tensor, output_index, Access::Use::writes}};
  if (!problem.is_dense()) {
    all.push_back({Access::Memory::tensor, groups_index, Access::Use::depends_on_previous});
  }
  if (problem.layout == ProductRows::gathered) {
    all.push_back({Access::Memory::tensor, row_ids_index, Access::Use::depends_on_previous});
  }
  if (format_traits(problem.out).has_scales()) {
    all.push_back({Access::Memory::scales, output_index, Access::Use::writes});
  }
  if (problem.out == Format::fp8_tensor || problem.out == Format::nvfp4) {
    all.push_back({Access::Memory::global_scale, output_index, Access::Use::depends_on_previous});
  }
  return all;
}

std::int64_t max_rows(const ProductProblem& problem) {
  return problem.layout == ProductRows::masked ? size_product(problem.experts, problem.rows) : problem.rows;
}

}  // namespace

std::string quantize_rows_kernel_name(Format values, Format out) {
  return fmt::format(
      "thresher::strategies::gemm::quantize_rows_kernel<thresher::strategies::gemm::QuantizedOutputRows::{}, "
      "thresher::strategies::gemm::Number::{}>",
      name(out), name(values));
}

DeviceProgram quantize_rows_program(Format values) {
  DeviceProgram program{.title = fmt::format("quantization of rows in {}", name(values)),
                        .text = "#include \"strategies/gemm/device/quantize_rows.hpp\"\n",
                        .kernels = {},
                        .options = {}};
  for (const Format out : output_formats) {
    const bool finds_scales = out == Format::fp8_row || out == Format::fp8_block;
    if (finds_scales || (values == Format::fp32 && format_traits(out).is_quantized_output())) {
      program.kernels.push_back(quantize_rows_kernel_name(values, out));
    }
  }
  return program;
}

KernelLaunch quantize_launch(Format values, Format out) {
  const bool row_has_a_scale = out == Format::fp8_row;
  KernelLaunch launch;
  launch.title = "quantize the rows";
  launch.program = quantize_rows_program(values);
  launch.expression = quantize_rows_kernel_name(values, out);
  launch.block.x = quantize_shape(row_has_a_scale).threads;
  launch.shared_bytes = quantize_shared_bytes(row_has_a_scale);
  launch.dependent = true;
  launch.expected.uses_shared_memory = row_has_a_scale;
  return launch;
}

QuantizeRowsParams quantize_params(const Tensor& c) {
  const int slots = c.rank == 3 ? 1 : 0;
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::uint64_t>(elements * thresher::bits(c.format) / 8);
  };
  QuantizeRowsParams params{};
  params.codes = {device_address(c.data)};
  params.codes_stride = bytes(c.strides[slots]);
  params.codes_slot_stride = slots == 1 ? bytes(c.strides[0]) : 0;
  params.given = {device_address(c.global_scale)};
  params.given_slots = narrow(slots);
  if (format_traits(c.format).has_scales()) {
    const OutputScaleParams scales = output_scales(c);
    params.scales = {scales.scales.address};
    params.scales_slot_stride = scales.slot_stride;
    params.scales_row_stride = scales.row_stride;
    params.scales_block_stride = scales.block_stride;
    params.powers_of_two = scales.powers_of_two;
    params.scales_are_blocked = c.scales.layout == ScaleLayout::blocked ? 1 : 0;
    if (params.scales_are_blocked != 0 && slots == 1) {
      params.scales_slot_stride = scale_bytes(c.shape[1], c.shape[2], ScaleLayout::blocked);
    }
  }
  params.slots = narrow(slots);
  params.rows = narrow(c.shape[slots]);
  params.columns = narrow(c.shape[slots + 1]);
  return params;
}

void bind_quantize(const QuantizeRowsParams& params, Format out, LaunchArguments& arguments) {
  const bool row_has_a_scale = out == Format::fp8_row;
  arguments.set(params);
  const std::uint32_t pieces = row_has_a_scale ? 1 : quantize_pieces(params.columns);
  const std::int64_t rows = quantize_shape(row_has_a_scale).rows;
  arguments.grid.x = narrow(size_product(ceil_div(std::int64_t{params.rows}, rows), pieces));
  arguments.grid.y = params.slots != 0 ? params.groups : 1;
}

ProductProblem unrounded(ProductProblem problem) {
  problem.out = Format::fp32;
  return problem;
}

PlannedCall with_output_quantization(PlannedCall call, const ProductProblem& problem) {
  Unrounded values;
  values.piece =
      add_piece(call, "outputs in float32",
                static_cast<std::size_t>(size_product(max_rows(problem), values_stride(problem.n) * std::int64_t{4})));
  values.offset = call.workspace[values.piece].offset;
  auto& product = std::get<KernelLaunch>(call.steps.back());
  if (product.alternative) {  // which would write where C's codes lie
    throw Error(ErrorCode::internal, "the product before quantized rows has an alternative launch, expected none");
  }
  write_unrounded(product, values);
  KernelLaunch launch = quantize_launch(Format::fp32, problem.out);
  // It waits itself: dense products that are not dependent launches have it behind them too.
  launch.dependent = problem.is_dense() || product.dependent;
  launch.accesses = accesses_of(problem, values);
  launch.bind = [problem, values](const CallTensors& of, LaunchArguments& out) {
    bind_quantize(params_of(problem, values, of), problem.out, out);
    return true;
  };
  call.steps.emplace_back(std::move(launch));
  call.work = with_output_quantization(std::move(call.work), problem);
  return call;
}

WorkModel with_output_quantization(WorkModel work, const ProductProblem& problem) {
  const double bytes = 4.0 + format_traits(problem.out).stored_bits() / 8;
  work.parts.emplace_back(MemoryPass{.title = "quantizing the rows",
                                     .bytes = usual_rows(problem) * static_cast<double>(problem.n) * bytes,
                                     .is_hidden_launch = true});
  return work;
}

}  // namespace thresher::strategies::gemm
