#include "strategies/gemm/call.hpp"

#include <algorithm>

#include "strategies/gemm/formats.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::gemm {
namespace {

static_assert(GroupedStatus::skipped_rows == rows_skipped);
static_assert(GroupedStatus::decreasing == pipeline::bounds_decrease &&
              GroupedStatus::negative == pipeline::bounds_negative && GroupedStatus::beyond == pipeline::bounds_beyond);

constexpr std::int64_t wide_bytes = 16;

Biases biases_of(const Tensor& view) {
  if (view.rank == 0) {
    return {};
  }
  return {{device_address(view.data)}, view.strides[0], view.strides[1], number_of(view.format)};
}

}  // namespace

OutputScaleParams output_scales(const Tensor& c) {
  OutputScaleParams params{};
  const bool has_slots = c.rank == 3;
  if (!format_traits(c.format).has_scales()) {
    params.scales = {device_address(c.global_scale)};
    params.slot_stride = has_slots ? 1 : 0;
    return params;
  }
  const auto rows = c.shape[has_slots ? 1 : 0];
  const std::int64_t blocks = ceil_div(c.shape[c.rank - 1], c.scales.block.columns);
  const bool is_column_major = c.scales.layout == ScaleLayout::column_major;
  const std::int64_t padded = is_column_major ? round_up(rows, std::int64_t{4}) : rows;
  params.scales = {device_address(c.scales.data)};
  params.slot_stride = has_slots ? static_cast<std::uint64_t>(blocks * padded) : 0;
  params.row_stride = static_cast<std::uint64_t>(is_column_major ? 1 : blocks);
  params.block_stride = static_cast<std::uint64_t>(is_column_major ? padded : 1);
  params.powers_of_two = c.scales.powers_of_two ? 1 : 0;
  return params;
}

machine::TensorMapDescription tensor_map(std::uint64_t address, machine::ElementType element, machine::Swizzle swizzle,
                                         std::initializer_list<std::uint64_t> extents,
                                         std::initializer_list<std::uint64_t> strides,
                                         std::initializer_list<std::uint32_t> box) {
  machine::TensorMapDescription map;
  map.address = address;
  map.element = element;
  map.swizzle = swizzle;
  map.rank = narrow(static_cast<std::int64_t>(extents.size()));
  std::copy(extents.begin(), extents.end(), map.extent);
  std::copy(strides.begin(), strides.end(), map.stride_bytes + 1);
  std::copy(box.begin(), box.end(), map.box);
  return map;
}

machine::TensorMapDescription matrix_map(const Tensor& matrix, const MapBox& box) {
  const machine::ElementType element = element_type(number_of(matrix.format));
  const int rows = matrix.rank - 2;
  return tensor_map(
      device_address(matrix.data), element, box.swizzle,
      {static_cast<std::uint64_t>(matrix.shape[rows + 1]), static_cast<std::uint64_t>(matrix.shape[rows])},
      {static_cast<std::uint64_t>(matrix.strides[rows] * machine::element_bytes(element))}, {box.columns, box.rows});
}

void read_in_place(PlannedCall& call) {
  call.data_alignment = tma_alignment_bytes;
  call.alignments = {
      {tokens_index, tma_alignment_bytes}, {gate_index, tma_alignment_bytes}, {up_index, tma_alignment_bytes}};
}

bool allows_wide_stores(const Tensor& c) {
  const std::int64_t bytes = thresher::bits(c.format) / 8;
  bool allows = c.shape[c.rank - 1] * bytes % wide_bytes == 0;
  for (int d = 0; d + 1 < c.rank; ++d) {
    allows = allows && c.strides[d] * bytes % wide_bytes == 0;
  }
  return allows;
}

CallExtents extents_of(const CallTensors& call) {
  const WeightExtents weights = weight_extents(gate_of(call));
  const Tensor& c = output_of(call);
  const bool has_slots = c.rank == 3;
  return {weights.experts, c.shape[has_slots ? 1 : 0], weights.n, weights.k, has_slots};
}

CallExtents extents_of(const ProductProblem& problem) {
  return {problem.experts, problem.rows, problem.n, problem.k, problem.layout == ProductRows::masked};
}

void add_status(const ProductProblem& problem, std::int64_t blocks, PlannedCall& call) {
  if (!problem.is_dense()) {
    const bool by_every_block = problem.layout == ProductRows::gathered;
    add_piece(call, "status", status_bytes(static_cast<std::size_t>(by_every_block ? blocks : 1)));
  }
}

std::int64_t max_tiles(const CallExtents& extents, std::int64_t tile_rows, std::int64_t tile_outputs) {
  // Each group of packed rows may have a tile of one row.
  const std::int64_t groups = std::min(extents.experts, extents.rows);
  const std::int64_t row_tiles = extents.has_slots ? size_product(extents.experts, ceil_div(extents.rows, tile_rows))
                                                   : groups + (extents.rows - groups) / tile_rows;
  return size_product(row_tiles, ceil_div(extents.n, tile_outputs));
}

GroupParams group_params(const CallTensors& call, std::int64_t tile_outputs) {
  const CallExtents extents = extents_of(call);
  GroupParams params{};
  const Tensor& bounds = tensor_at(call, groups_index);
  params.groups.bounds = {device_address(bounds.data)};
  params.groups.count = static_cast<std::uint32_t>(extents.experts);
  params.groups.rows = static_cast<std::uint32_t>(extents.rows);
  params.groups.slots = extents.has_slots ? 1 : 0;
  params.groups.column_tiles = static_cast<std::uint32_t>(ceil_div(extents.n, tile_outputs));
  params.groups.settled = call.settled_groups ? 1 : 0;
  if (bounds.rank > 0) {
    params.status = {device_address(call.workspace)};
  }
  return params;
}

FinishParams finish_params(const ProductProblem& problem, const CallTensors& call) {
  const Tensor& c = output_of(call);
  const bool has_slots = c.rank == 3;
  FinishParams params{};
  params.c = {device_address(c.data)};
  params.row_stride = static_cast<std::uint64_t>(c.strides[has_slots ? 1 : 0]);
  params.slot_stride = has_slots ? static_cast<std::uint64_t>(c.strides[0]) : 0;
  params.n = static_cast<std::uint32_t>(c.shape[c.rank - 1]);
  params.wide = allows_wide_stores(c) ? 1 : 0;
  params.gate_bias = biases_of(tensor_at(call, gate_bias_index));
  params.up_bias = biases_of(tensor_at(call, up_bias_index));
  params.row_weights = {device_address(tensor_at(call, row_weights_index).data)};
  params.row_weights_slot_stride = has_slots ? static_cast<std::uint64_t>(c.shape[1]) : 0;
  if (problem.layout == ProductRows::gathered) {
    params.row_ids = {device_address(tensor_at(call, row_ids_index).data)};
    params.ids_end = static_cast<std::uint32_t>(tokens_of(call).shape[0] * problem.row_ids_divisor);
  }
  if (problem.activation) {
    params.alpha = problem.activation->alpha;
    params.limit = problem.activation->limit;
    params.up_offset = problem.activation->up_offset;
  }
  if (format_traits(c.format).is_quantized_output()) {
    params.output_scales = output_scales(c);
  }
  return params;
}

machine::TensorMapDescription rows_map(const OperandRows& operand, std::uint32_t box_rows, machine::Swizzle swizzle) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint32_t columns = machine::swizzle_span_bytes(swizzle) / machine::element_bytes(operand.element);
  return tensor_map(operand.address, operand.element, swizzle,
                    {extent(operand.k), extent(operand.rows), extent(operand.slots)},
                    {extent(operand.row_bytes), extent(operand.slot_bytes)}, {columns, box_rows, 1});
}

OperandRows token_rows(const CallTensors& call, machine::ElementType element) {
  const Tensor& a = tokens_of(call);
  const bool has_slots = a.rank == 3;
  const std::int64_t bytes = machine::element_bytes(element);
  const std::int64_t row_bytes = a.strides[has_slots ? 1 : 0] * bytes;
  return {.element = element,
          .address = device_address(a.data),
          .k = a.shape[a.rank - 1],
          .rows = a.shape[has_slots ? 1 : 0],
          .slots = has_slots ? a.shape[0] : 1,
          .row_bytes = row_bytes,
          .slot_bytes = has_slots ? a.strides[0] * bytes : row_bytes};
}

KernelLaunch product_launch(DeviceProgram program, const pipeline::Shape& shape, int blocks_resident,
                            int shared_bytes) {
  const int threads = pipeline::threads(shape);
  KernelLaunch launch;
  launch.title = "multiply";
  launch.expression = program.kernels.front();
  launch.program = std::move(program);
  launch.block.x = narrow(threads);
  launch.cluster.x = narrow(pipeline::cluster_blocks(shape));
  launch.shared_bytes = narrow(shared_bytes);
  launch.registers = registers_at_launch(threads * blocks_resident, shape.loader_registers, shape.math_registers);
  launch.persistent = shape.persistent;
  return launch;
}

void add_weight_reads(int matrices, Access::Memory memory, std::vector<Access>& accesses) {
  accesses.push_back({memory, gate_index, Access::Use::reads});
  if (matrices == 2) {
    accesses.push_back({memory, up_index, Access::Use::reads});
  }
}

void add_common_accesses(const ProductProblem& problem, bool is_profiled, std::vector<Access>& accesses) {
  const auto read = [&](std::size_t tensor, Access::Use use) {
    accesses.push_back({Access::Memory::tensor, tensor, use});
  };
  if (!problem.is_dense()) {
    read(groups_index, Access::Use::depends_on_previous);
  }
  if (problem.bias) {
    read(gate_bias_index, Access::Use::reads);
    if (problem.matrices() == 2) {
      read(up_bias_index, Access::Use::reads);
    }
  }
  if (problem.row_weights) {
    read(row_weights_index, Access::Use::depends_on_previous);
  }
  if (problem.layout == ProductRows::gathered) {
    read(row_ids_index, Access::Use::depends_on_previous);
  }
  accesses.push_back({Access::Memory::tensor, output_index, Access::Use::writes});
  if (format_traits(problem.out).is_quantized_output()) {
    const bool is_given = !format_traits(problem.out).has_scales();
    accesses.push_back({is_given ? Access::Memory::global_scale : Access::Memory::scales, output_index,
                        is_given ? Access::Use::depends_on_previous : Access::Use::writes});
  }
  if (!problem.is_dense()) {
    accesses.push_back({Access::Memory::workspace, status_piece, Access::Use::writes});
  }
  if (is_profiled) {
    accesses.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
  }
}

}  // namespace thresher::strategies::gemm
