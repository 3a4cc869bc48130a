#include "strategies/gemm/gather.hpp"

#include "core/integers.hpp"
#include "strategies/gemm/device/gather.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/work.hpp"

namespace thresher::strategies::gemm {
namespace {

std::int64_t element_bytes(const ProductProblem& problem) { return thresher::bits(problem.a) / 8; }

}  // namespace

std::string gather_kernel_name() { return "thresher::strategies::gemm::gather_rows_kernel"; }

DeviceProgram gather_program() {
  return {.title = "grouped_gemm gathering",
          .text = "#include \"strategies/gemm/device/gather.hpp\"\n",
          .kernels = {gather_kernel_name()},
          .options = {}};
}

RowsInWorkspace add_rows(std::string title, std::int64_t rows, std::int64_t row_bytes, PlannedCall& call) {
  const std::size_t piece = add_piece(call, std::move(title), static_cast<std::size_t>(size_product(rows, row_bytes)));
  return {piece, call.workspace[piece].offset, row_bytes};
}

RowsInWorkspace add_gathering(const ProductProblem& problem, const std::optional<RowsInWorkspace>& from, bool dependent,
                              PlannedCall& call) {
  const std::int64_t row_bytes =
      from ? from->row_bytes : round_up(problem.k * element_bytes(problem), tma_alignment_bytes);
  const RowsInWorkspace gathered = add_rows("gathered rows", problem.rows, row_bytes, call);
  KernelLaunch launch = preparation_launch("gather the rows", gather_program(), gather_kernel_name(), gather_threads);
  launch.dependent = dependent;
  launch.accesses = {{Access::Memory::tensor, row_ids_index, Access::Use::depends_on_previous},
                     {Access::Memory::workspace, gathered.piece, Access::Use::writes}};
  if (from) {
    launch.accesses.push_back({Access::Memory::workspace, from->piece, Access::Use::depends_on_previous});
  } else {
    launch.accesses.push_back({Access::Memory::tensor, tokens_index, Access::Use::depends_on_previous});
  }
  launch.bind = [gathered, from, divisor = problem.row_ids_divisor, bytes = element_bytes(problem)](
                    const CallTensors& of, LaunchArguments& out) {
    const Tensor& a = tokens_of(of);
    GatherParams params{};
    params.from = {from ? device_address(of.workspace) + from->offset : device_address(a.data)};
    params.to = {device_address(of.workspace) + gathered.offset};
    params.row_ids = {device_address(tensor_at(of, row_ids_index).data)};
    params.from_stride = static_cast<std::uint64_t>(from ? from->row_bytes : a.strides[0] * bytes);
    params.to_stride = static_cast<std::uint64_t>(gathered.row_bytes);
    params.ids_end = static_cast<std::uint32_t>(a.shape[0] * divisor);
    params.divisor = static_cast<std::uint32_t>(divisor);
    params.row_bytes = static_cast<std::uint32_t>(from ? from->row_bytes : a.shape[1] * bytes);
    out.set(params);
    out.grid.x = static_cast<std::uint32_t>(extents_of(of).rows);
    return true;
  };
  call.steps.emplace_back(std::move(launch));
  return gathered;
}

MemoryPass gathering_work(const ProductProblem& problem) {
  const double read_and_written_bytes = 2.0 * static_cast<double>(element_bytes(problem));
  return {"gathering the rows", usual_rows(problem) * static_cast<double>(problem.k) * read_and_written_bytes, true};
}

bool is_gathering(const Step& step) {
  const auto* const launch = std::get_if<KernelLaunch>(&step);
  return launch != nullptr && launch->expression == gather_kernel_name();
}

GatherParams gather_params(const KernelLaunch& gathering, const CallTensors& of) {
  LaunchArguments arguments;
  gathering.bind(of, arguments);
  return arguments.get<GatherParams>();
}

OperandRows token_rows(const CallTensors& call, const RowsInWorkspace& rows, machine::ElementType element,
                       std::int64_t k) {
  const CallExtents extents = extents_of(call);
  return {.element = element,
          .address = device_address(call.workspace) + rows.offset,
          .k = k,
          .rows = extents.rows,
          .slots = extents.has_slots ? extents.experts : 1,
          .row_bytes = rows.row_bytes,
          .slot_bytes = extents.has_slots ? extents.rows * rows.row_bytes : rows.row_bytes};
}

}  // namespace thresher::strategies::gemm
