#include "core/integers.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/plan.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

/// A change of the layouts is another name.
std::string layout_name(const Config& config) {
  const std::string name = config.numerics == Numerics::fast ? "nvfp4-fast-sm90-1" : "nvfp4-exact-sm90-1";
  return config.grouped ? name + (config.matrices == 2 ? "-experts" : "-experts-single") : name;
}

PackExpertsParams pack_params(const CallTensors& call, const Config& config, std::size_t factors_at) {
  const Tensor& gate = call.tensors[gate_index];
  const Tensor& up = call.tensors[config.matrices == 2 ? up_index : gate_index];
  const WeightExtents extents = weight_extents(gate);
  const ExpertBytes bytes = expert_bytes(config, extents.n, extents.k);
  PackExpertsParams params{};
  params.first.gate = weight_matrix(gate);
  params.first.up = weight_matrix(up);
  params.first.packed = {device_address(call.packed)};
  params.first.row_factors = {device_address(call.packed) + factors_at};
  params.first.k_blocks = bytes.k_blocks;
  params.first.output_groups = bytes.output_groups;
  if (config.grouped) {
    params.gate_value_bytes = static_cast<std::uint64_t>(gate.strides[0] / 2);
    params.gate_scale_bytes = expert_scale_bytes(gate);
    params.up_value_bytes = static_cast<std::uint64_t>(up.strides[0] / 2);
    params.up_scale_bytes = expert_scale_bytes(up);
    params.packed_bytes = static_cast<std::uint64_t>(bytes.blocks);
    params.expert_factors = narrow(bytes.factors / static_cast<std::int64_t>(sizeof(float)));
  }
  return params;
}

void bind_packing(const CallTensors& call, const Config& config, std::size_t factors_at, Packing packing,
                  LaunchArguments& out) {
  PackExpertsParams params = pack_params(call, config, factors_at);
  constexpr u32 warps = threads / 32;
  params.expert_blocks = packing == Packing::factors ? params.first.output_groups * fast::group_factors / warps
                                                     : params.first.output_groups * params.first.k_blocks;
  if (config.grouped) {
    out.set(params);
  } else {
    out.set(params.first);
  }
  out.grid.x = params.expert_blocks * narrow(weight_extents(gate_of(call)).experts);
}

KernelLaunch packing_launch(const Config& config, std::size_t factors_at, Packing packing) {
  KernelLaunch launch;
  launch.title = packing == Packing::factors ? "find the rows' factors" : "pack the weights";
  launch.program = preparation_program();
  launch.expression = config.grouped ? pack_experts_kernel_name(packing, config.matrices) : pack_kernel_name(packing);
  launch.block.x = threads;
  launch.expected.uses_shared_memory = false;
  add_reads(launch.accesses, gate_index, Format::nvfp4, Access::Use::reads);
  if (config.matrices == 2) {
    add_reads(launch.accesses, up_index, Format::nvfp4, Access::Use::reads);
  }
  launch.accesses.push_back(
      {Access::Memory::packed, packing == Packing::factors ? row_factors_piece : blocks_piece, Access::Use::writes});
  if (packing == Packing::fast) {
    launch.accesses.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
  }
  launch.bind = [config, factors_at, packing](const CallTensors& call, LaunchArguments& out) {
    bind_packing(call, config, factors_at, packing, out);
    return true;
  };
  return launch;
}

}  // namespace

ExpertBytes expert_bytes(const Config& config, std::int64_t n, std::int64_t k) {
  ExpertBytes bytes;
  bytes.k_blocks = weight_k_blocks(config.numerics, narrow(k));
  bytes.output_groups = narrow(ceil_div(n, std::int64_t{warpgroup_outputs(config.matrices)}));
  bytes.blocks = std::int64_t{bytes.output_groups} * bytes.k_blocks * weight_block_bytes(config.numerics);
  if (config.numerics == Numerics::fast) {
    bytes.factors = std::int64_t{bytes.output_groups} * fast::group_factors * static_cast<std::int64_t>(sizeof(float));
  }
  return bytes;
}

void add_packing(const ProductProblem& problem, const Config& config, PlannedCall& call) {
  const ExpertBytes bytes = expert_bytes(config, problem.n, problem.k);
  const bool is_fast = config.numerics == Numerics::fast;
  add_piece(call.packed, "packed weights", static_cast<std::size_t>(size_product(problem.experts, bytes.blocks)));
  if (is_fast) {
    add_piece(call.packed, "row factors", static_cast<std::size_t>(size_product(problem.experts, bytes.factors)));
  }
  const std::size_t factors_at = is_fast ? call.packed[row_factors_piece].offset : 0;
  PlannedCall packing;
  packing.strategy = "packed";
  packing.packed = call.packed;
  if (is_fast) {
    packing.steps.emplace_back(packing_launch(config, factors_at, Packing::factors));
  }
  packing.steps.emplace_back(packing_launch(config, factors_at, is_fast ? Packing::fast : Packing::exact));
  call.packing = std::make_shared<const PlannedCall>(std::move(packing));
  call.packed_layout = layout_name(config);
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
