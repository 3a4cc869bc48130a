#include "strategies/dual_gemm/one_group/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/grouped_weights.hpp"
#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/tensors.hpp"
#include "strategies/grouped_gemm/columns/strategy.hpp"
#include "strategies/grouped_gemm/host/dense.hpp"
#include "strategies/grouped_gemm/rows/strategy.hpp"
#include "strategies/grouped_gemm/tensors.hpp"
#include "strategies/refusal.hpp"

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

std::size_t own_place(std::size_t grouped) {
  return static_cast<std::size_t>(std::find(grouped_places.begin(), grouped_places.end(), grouped) -
                                  grouped_places.begin());
}

using GroupedCallTensors = std::array<Tensor, grouped_gemm::tensor_count + 1>;

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

/// In place of a grouped product's.
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

GroupedProblem grouped(const DualGemmProblem& problem) {
  return {.experts = 1,
          .rows = problem.m,
          .n = problem.n,
          .k = problem.k,
          .a = problem.a,
          .b = problem.b,
          .out = problem.out,
          .activation = problem.activation};
}

DualGemmProblem dense(const GroupedProblem& problem) {
  return {.m = problem.rows,
          .n = problem.n,
          .k = problem.k,
          .a = problem.a,
          .b = problem.b,
          .out = problem.out,
          .activation = *problem.activation};
}

/// Of FP8 that has all that a dual GEMM has, and nothing else.
bool is_dense(const GroupedProblem& problem) {
  return is_fp8(problem.a) && problem.activation && !problem.bias && !problem.row_weights &&
         problem.layout == RowLayout::packed;
}

/// A grouped strategy of plain operands. For 16 bits the dual GEMM has kernels of its own.
class OneGroup final : public Strategy<DualGemmProblem> {
 public:
  explicit OneGroup(const Strategy<GroupedProblem>& of) : of_(of) {}

  [[nodiscard]] std::string_view name() const override { return of_.name(); }
  [[nodiscard]] std::string_view summary() const override { return of_.summary(); }
  [[nodiscard]] DeviceKind device_kind() const override { return of_.device_kind(); }
  [[nodiscard]] Role role(const DualGemmProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return of_.knobs(); }

  [[nodiscard]] std::optional<std::string> not_made_for(const DualGemmProblem& problem,
                                                        const DeviceSpec& device) const override {
    if (is_fp8(problem.a) && !of_.not_made_for(grouped(problem), device)) {
      return std::nullopt;
    }
    return fmt::format("strategy {} takes FP8 with FP8 on a Hopper GPU, not {} with {} on {}", name(),
                       thresher::name(problem.a), thresher::name(problem.b), device.name);
  }

  [[nodiscard]] std::vector<std::string> obstacles(const DualGemmProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec& device) const override {
    std::vector<std::string> found = of_.obstacles(grouped(problem), knobs, device);
    if (auto sentence = not_made_for(problem, device)) {
      return {*sentence};
    }
    return found;
  }

  [[nodiscard]] std::vector<Knobs> candidates(const DualGemmProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    std::vector<Knobs> found = of_.candidates(grouped(problem), knobs, device);
    if (not_made_for(problem, device)) {
      found.clear();
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const DualGemmProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_obstacles(name(), knobs, obstacles(problem, knobs, device));
    PlannedCall call = grouped_gemm::without_offsets(of_.plan(grouped(problem), knobs, device));
    for (Step& step : call.steps) {
      take_own_tensors(std::get<KernelLaunch>(step));
    }
    for (Alignment& alignment : call.alignments) {
      alignment.tensor = own_place(alignment.tensor);
    }
    return call;
  }

  [[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Knobs& knobs,
                               const DeviceSpec& device) const override {
    return of_.work(grouped(problem), knobs, device);
  }

  [[nodiscard]] std::vector<DualGemmProblem> edges(const DualGemmProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec& device) const override {
    const std::vector<GroupedProblem> of_groups = of_.edges(grouped(problem), knobs, device);
    std::vector<DualGemmProblem> found;
    std::transform(of_groups.begin(), of_groups.end(), std::back_inserter(found), dense);
    return found;
  }

  [[nodiscard]] std::vector<Sample<DualGemmProblem>> samples() const override {
    std::vector<Sample<DualGemmProblem>> found;
    for (const Sample<GroupedProblem>& sample : of_.samples()) {
      if (is_dense(sample.problem)) {
        found.push_back({dense(sample.problem), sample.knobs});
      }
    }
    return found;
  }

 private:
  const Strategy<GroupedProblem>& of_;
};

}  // namespace

const Strategy<DualGemmProblem>& columns_strategy() {
  static const OneGroup strategy(grouped_gemm::columns_strategy());
  return strategy;
}

const Strategy<DualGemmProblem>& rows_strategy() {
  static const OneGroup strategy(grouped_gemm::rows_strategy());
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
