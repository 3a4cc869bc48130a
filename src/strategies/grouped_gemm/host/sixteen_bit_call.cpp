#include "strategies/grouped_gemm/host/sixteen_bit_call.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "pipeline/grouped/groups.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/grouped_gemm/device/sixteen_bit_params.hpp"
#include "strategies/grouped_gemm/host/gather.hpp"
#include "strategies/grouped_gemm/tensors.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

machine::ElementType element_type(const SixteenBitKernel& kernel) {
  return kernel.operand == dual_gemm::Number::bf16 ? machine::ElementType::bf16 : machine::ElementType::fp16;
}

machine::TensorMapDescription weights_map(const SixteenBitKernel& kernel, const Tensor& view) {
  constexpr std::int64_t bytes = 2;
  machine::TensorMapDescription map;
  map.address = address_of(view.data);
  map.element = element_type(kernel);
  map.swizzle = kernel.slots.swizzle();
  map.rank = 3;
  map.extent[0] = static_cast<std::uint64_t>(view.shape[2]);
  map.extent[1] = static_cast<std::uint64_t>(view.shape[1]);
  map.extent[2] = static_cast<std::uint64_t>(view.shape[0]);
  map.stride_bytes[1] = static_cast<std::uint64_t>(view.strides[1] * bytes);
  map.stride_bytes[2] = static_cast<std::uint64_t>(view.strides[0] * bytes);
  map.box[0] = static_cast<std::uint32_t>(kernel.slots.panel_k());
  map.box[1] = static_cast<std::uint32_t>(kernel.slots.weight_rows);
  map.box[2] = 1;
  return map;
}

Expectations expectations(const SixteenBitKernel& kernel) {
  Expectations expected;
  expected.matrix_kind = "HGMMA";
  expected.min_matrix_instructions = kernel.least_products;
  expected.min_tma_loads = 3;
  return expected;
}

struct Product {
  GroupedProblem problem;
  SixteenBitKernel kernel;
  std::int64_t most_blocks = 0;
  std::optional<RowsInWorkspace> gathered{};

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = extents_of(call);
    SixteenBitParams params{};
    params.groups = group_params(call, kernel.tile_outputs);
    params.finish = finish_params(problem, call);
    params.profile = {profile_address(call)};
    params.k = static_cast<std::uint32_t>(extents.k);
    out.set(params);
    out.grid.x =
        static_cast<std::uint32_t>(std::min(most_blocks, most_tiles(extents, kernel.rungs.most, kernel.tile_outputs)));
    const machine::ElementType element = element_type(kernel);
    const TokenRows tokens = gathered ? token_rows(call, *gathered, element, extents.k) : token_rows(call, element);
    out.add_map(offsetof(SixteenBitParams, few_tokens),
                tokens_map(tokens, pipeline::few_token_rows, kernel.slots.swizzle()));
    out.add_map(offsetof(SixteenBitParams, many_tokens),
                tokens_map(tokens, pipeline::many_token_rows(kernel.rungs), kernel.slots.swizzle()));
  }

  void bind_weights(const CallTensors& call, LaunchArguments& out) const {
    out.add_map(offsetof(SixteenBitParams, gate), weights_map(kernel, call.tensors[gate_index]));
    if (kernel.slots.matrices == 2) {
      out.add_map(offsetof(SixteenBitParams, up), weights_map(kernel, call.tensors[up_index]));
    }
  }

  [[nodiscard]] std::vector<Access> accesses() const {
    std::vector<Access> all;
    if (gathered) {
      all.push_back({Access::Memory::workspace, gathered->piece, Access::Use::reads_earlier});
    } else {
      all.push_back({Access::Memory::tensor, tokens_index, Access::Use::reads_earlier});
    }
    all.push_back({Access::Memory::tensor, gate_index, Access::Use::reads});
    if (kernel.slots.matrices == 2) {
      all.push_back({Access::Memory::tensor, up_index, Access::Use::reads});
    }
    add_common_accesses(problem, all);
    if (kernel.shape.profiled) {
      all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
    }
    return all;
  }
};

KernelLaunch multiplying(const Product& product) {
  const SixteenBitKernel& kernel = product.kernel;
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = kernel.program;
  launch.expression = kernel.expression;
  launch.block.x = static_cast<std::uint32_t>(pipeline::threads(kernel.shape));
  launch.shared_bytes = static_cast<std::uint32_t>(
      pipeline::grouped_shared_bytes(kernel.shape, static_cast<std::uint32_t>(product.problem.experts)));
  launch.registers = registers_at_launch(pipeline::threads(kernel.shape) * kernel.blocks_resident,
                                         kernel.shape.loader_registers, kernel.shape.math_registers);
  launch.dependent = kernel.dependent_launch;
  launch.persistent = true;
  launch.accesses = product.accesses();
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.bind_weights = [product](const CallTensors& call, LaunchArguments& out) { product.bind_weights(call, out); };
  launch.expected = expectations(kernel);
  return launch;
}

}  // namespace

PlannedCall planned_call(const GroupedProblem& problem, const SixteenBitKernel& kernel, int multiprocessors) {
  PlannedCall call;
  call.strategy = kernel.strategy;
  call.knobs = kernel.knobs;
  call.work = kernel.work;
  Product product{problem, kernel, std::int64_t{multiprocessors} * kernel.blocks_resident};
  add_status(problem, product.most_blocks, call);
  if (problem.layout == RowLayout::gathered) {
    product.gathered = add_gathering(problem, std::nullopt, kernel.dependent_launch, call);
  }
  call.steps.emplace_back(multiplying(product));
  call.data_alignment = copy_engine_bytes;
  call.alignments = {{tokens_index, copy_engine_bytes}, {gate_index, copy_engine_bytes}, {up_index, copy_engine_bytes}};
  return call;
}

}  // namespace thresher::strategies::grouped_gemm
