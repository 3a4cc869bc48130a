#include "strategies/dual_gemm/fused/launch.hpp"

#include <cstddef>

#include "strategies/dual_gemm/fused/geometry.hpp"
#include "strategies/dual_gemm/fused/host/work.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

Matrix matrix(const Tensor& tensor) { return {device_address(tensor.data), tensor.strides[0]}; }

/// One slot of the ring: 64 tokens of a warpgroup and all rows of weights an instruction, 16 along K.
Expectations expectations(const Config& config) {
  Expectations expected;
  expected.matrix_kind = "HGMMA";
  expected.min_matrix_instructions = config.warpgroup_tiles * config.block_k / 16;
  expected.min_tma_loads = 1;
  expected.min_tma_stores = config.epilogue == Epilogue::tma ? 1 : 0;
  return expected;
}

/// False when the copy engine is to store an output that it cannot address.
bool bind(const Config& config, const Activation& activation, const CallTensors& call, LaunchArguments& out) {
  const Tensor& weights = gate_of(call);
  const Extents extents{tokens_of(call).shape[0], weights.shape[0], weights.shape[1]};
  const Matrix output = matrix(output_of(call));
  const Geometry launched = geometry(config, extents);
  Params params = scalars(config, extents, output, launched, activation);
  if (config.epilogue == Epilogue::tma && params.c_wide == 0) {
    return false;
  }
  params.profile = {profile_address(call)};
  out.set(params);
  out.grid.x = launched.blocks;
  out.add_map(offsetof(Params, tokens), tokens_map(config, extents, matrix(tokens_of(call)), launched));
  if (config.epilogue == Epilogue::tma) {
    out.add_map(offsetof(Params, output), output_map(config, extents, output));
  }
  return true;
}

void bind_weights(const Config& config, const CallTensors& call, LaunchArguments& out) {
  const Tensor& weights = gate_of(call);
  const Extents extents{tokens_of(call).shape[0], weights.shape[0], weights.shape[1]};
  out.add_map(offsetof(Params, gate), weights_map(config, extents, matrix(weights)));
  out.add_map(offsetof(Params, up), weights_map(config, extents, matrix(up_of(call))));
}

std::vector<Access> accesses(const Config& config) {
  std::vector<Access> all{{Access::Memory::tensor, tokens_index, Access::Use::depends_on_previous},
                          {Access::Memory::tensor, gate_index, Access::Use::reads},
                          {Access::Memory::tensor, up_index, Access::Use::reads},
                          {Access::Memory::tensor, output_index, Access::Use::writes}};
  if (config.profiled) {
    all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
  }
  return all;
}

KernelLaunch launch(const Config& config, const Activation& activation) {
  const pipeline::Shape shape = shape_of(config);
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(config);
  launch.expression = kernel_expression(config);
  launch.block.x = static_cast<std::uint32_t>(pipeline::threads(shape));
  launch.cluster.x = static_cast<std::uint32_t>(pipeline::cluster_blocks(shape));
  launch.shared_bytes = static_cast<std::uint32_t>(pipeline::shared_bytes(shape));
  launch.registers = registers_at_launch(pipeline::threads(shape), config.loader_registers, config.math_registers);
  launch.dependent = config.dependent_launch;
  launch.persistent = config.persistent;
  launch.accesses = accesses(config);
  launch.bind = [config, activation](const CallTensors& call, LaunchArguments& out) {
    return bind(config, activation, call, out);
  };
  launch.bind_weights = [config](const CallTensors& call, LaunchArguments& out) { bind_weights(config, call, out); };
  launch.expected = expectations(config);
  return launch;
}

}  // namespace

PlannedCall planned_call(const ProductProblem& problem, const Config& config) {
  PlannedCall call;
  call.strategy = name(config.order);
  call.knobs = knob_table().knobs(config);
  KernelLaunch multiply = launch(config, *problem.activation);
  if (config.epilogue == Epilogue::tma) {
    Config direct = config;
    direct.epilogue = Epilogue::simt;
    multiply.alternative = std::make_shared<const KernelLaunch>(launch(direct, *problem.activation));
  }
  call.steps.emplace_back(std::move(multiply));
  call.work = work(problem, config);
  call.data_alignment = tma_alignment_bytes;
  call.alignments = {
      {tokens_index, tma_alignment_bytes}, {gate_index, tma_alignment_bytes}, {up_index, tma_alignment_bytes}};
  return call;
}

}  // namespace thresher::strategies::dual_gemm::fused
