#include "strategies/grouped_gemm/host/gather.hpp"

#include "core/integers.hpp"
#include "strategies/grouped_gemm/device/gather.hpp"
#include "strategies/grouped_gemm/tensors.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

constexpr std::int64_t element_bytes = 2;
constexpr std::int64_t copy_engine_bytes = 16;

std::int64_t gathered_row_bytes(std::int64_t k) { return round_up(k * element_bytes, copy_engine_bytes); }

}  // namespace

std::string gather_kernel_name() { return "thresher::strategies::grouped_gemm::gather_rows_kernel"; }

DeviceProgram gather_program() {
  return {.title = "grouped_gemm gathering",
          .text = "#include \"strategies/grouped_gemm/device/gather.hpp\"\n",
          .kernels = {gather_kernel_name()},
          .options = {}};
}

GatheredRows add_gathering(const GroupedProblem& problem, bool dependent, PlannedCall& call) {
  GatheredRows gathered;
  gathered.piece = add_piece(call, "gathered rows",
                             static_cast<std::size_t>(size_product(problem.rows, gathered_row_bytes(problem.k))));
  gathered.offset = call.workspace[gathered.piece].offset;
  KernelLaunch launch;
  launch.title = "gather the rows";
  launch.program = gather_program();
  launch.expression = gather_kernel_name();
  launch.block.x = gather_threads;
  launch.dependent = dependent;
  launch.expected.uses_shared_memory = false;
  launch.accesses = {{Access::Memory::tensor, tokens_index, Access::Use::reads},
                     {Access::Memory::tensor, row_ids_index, Access::Use::reads},
                     {Access::Memory::workspace, gathered.piece, Access::Use::writes}};
  launch.bind = [gathered, divisor = problem.row_ids_divisor](const CallTensors& of, LaunchArguments& out) {
    const Tensor& a = of.tensors[tokens_index];
    const std::int64_t k = a.shape[1];
    GatherParams params{};
    params.from = {address_of(a.data)};
    params.to = {address_of(of.workspace) + gathered.offset};
    params.row_ids = {address_of(of.tensors[row_ids_index].data)};
    params.from_stride = static_cast<std::uint64_t>(a.strides[0] * element_bytes);
    params.to_stride = static_cast<std::uint64_t>(gathered_row_bytes(k));
    params.ids_end = static_cast<std::uint32_t>(a.shape[0] * divisor);
    params.divisor = static_cast<std::uint32_t>(divisor);
    params.k = static_cast<std::uint32_t>(k);
    out.set(params);
    out.grid.x = static_cast<std::uint32_t>(extents_of(of).rows);
    return true;
  };
  call.steps.emplace_back(std::move(launch));
  return gathered;
}

TokenRows token_rows(const CallTensors& call, const GatheredRows& gathered, machine::ElementType element) {
  const CallExtents extents = extents_of(call);
  const std::int64_t row_bytes = gathered_row_bytes(extents.k);
  return {.element = element,
          .address = address_of(call.workspace) + gathered.offset,
          .k = extents.k,
          .rows = extents.rows,
          .slots = 1,
          .row_bytes = row_bytes,
          .slot_bytes = row_bytes};
}

}  // namespace thresher::strategies::grouped_gemm
