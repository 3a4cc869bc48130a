#include "strategies/dual_gemm/host/one_group.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/grouped_weights.hpp"
#include "strategies/dual_gemm/tensors.hpp"
#include "strategies/grouped_gemm/tensors.hpp"

namespace thresher::strategies::dual_gemm {
namespace {

/// Where a grouped call has the tensors of a dual GEMM.
constexpr std::array grouped_places = [] {
  std::array<std::size_t, tensor_count + 1> places{};
  places[tokens_index] = grouped_gemm::tokens_index;
  places[gate_index] = grouped_gemm::gate_index;
  places[up_index] = grouped_gemm::up_index;
  places[output_index] = grouped_gemm::output_index;
  places[profile_index] = grouped_gemm::profile_index;
  return places;
}();

using GroupedCallTensors = std::array<Tensor, grouped_gemm::product_tensor_count>;

GroupedCallTensors grouped_tensors(const CallTensors& call) {
  GroupedCallTensors all{};
  all[grouped_gemm::tokens_index] = tokens_of(call);
  all[grouped_gemm::gate_index] = stack_of_one(gate_of(call));
  all[grouped_gemm::up_index] = stack_of_one(up_of(call));
  all[grouped_gemm::output_index] = output_of(call);
  if (call.tensors.size() > profile_index) {
    all[grouped_gemm::profile_index] = call.tensors[profile_index];
  }
  return all;
}

}  // namespace

GroupedProblem one_group(const DualGemmProblem& problem) {
  return {.experts = 1,
          .rows = problem.m,
          .n = problem.n,
          .k = problem.k,
          .a = problem.a,
          .b = problem.b,
          .out = problem.out,
          .activation = problem.activation};
}

DualGemmProblem without_groups(const GroupedProblem& problem) {
  return {.m = problem.rows,
          .n = problem.n,
          .k = problem.k,
          .a = problem.a,
          .b = problem.b,
          .out = problem.out,
          .activation = *problem.activation};
}

std::size_t own_place(std::size_t grouped) {
  return static_cast<std::size_t>(std::find(grouped_places.begin(), grouped_places.end(), grouped) -
                                  grouped_places.begin());
}

void take_own_tensors(KernelLaunch& launch) {
  launch.bind = [bind = std::move(launch.bind)](const CallTensors& call, LaunchArguments& out) {
    const GroupedCallTensors all = grouped_tensors(call);
    return bind({all, call.workspace, call.packed}, out);
  };
  if (launch.bind_weights) {
    launch.bind_weights = [bind = std::move(launch.bind_weights)](const CallTensors& call, LaunchArguments& out) {
      const GroupedCallTensors all = grouped_tensors(call);
      bind({all, call.workspace, call.packed}, out);
    };
  }
  for (Access& access : launch.accesses) {
    if (access.memory != Access::Memory::workspace && access.memory != Access::Memory::packed) {
      access.index = own_place(access.index);
    }
  }
}

}  // namespace thresher::strategies::dual_gemm
