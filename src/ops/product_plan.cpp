#include "ops/product_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ops/tensor_checks.hpp"
#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "strategies/moe_layer/tensors.hpp"

namespace thresher::ops {
namespace {

namespace tensors = strategies::gemm;
using strategies::PlannedCall;
using tensors::ProductRows;

bool is_dual_gemm(const ProductProblem& problem) { return tensors::product_of(problem) == Product::dual_gemm; }

/// Bytes from one row to the next, and from one matrix to the next, are multiples of what a step asks for.
std::string alignment_obstacle(const strategies::Alignment& alignment, const Tensor& tensor, std::string_view name,
                               bool is_of_dual_gemm) {
  const auto bytes = static_cast<std::int64_t>(alignment.row_bytes);
  const std::int64_t multiple = bytes * 8 / bits(tensor.format);
  if (strategies::device_address(tensor.data) % alignment.row_bytes != 0) {
    return fmt::format("{} is not aligned to {} bytes", name, bytes);
  }
  for (int d = 0; d + 1 < tensor.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (tensor.shape[i] > 1 && tensor.strides[i] % multiple != 0) {
      return is_of_dual_gemm
                 ? fmt::format("{} has rows {} elements apart, not a multiple of {}", name, tensor.strides[i], multiple)
                 : fmt::format("{} has stride {} along dimension {}, not a multiple of {}", name, tensor.strides[i], d,
                               multiple);
    }
  }
  return "";
}

/// A of a dual GEMM is aligned already (PlannedCall::data_alignment); the distance of its rows counts even of one row.
void require_aligned(const ProductProblem& problem, const PlannedCall& call, const Tensor& a) {
  for (const strategies::Alignment& alignment : call.alignments) {
    if (alignment.tensor != tensors::tokens_index) {
      continue;
    }
    if (is_dual_gemm(problem)) {
      const std::int64_t multiple = static_cast<std::int64_t>(alignment.row_bytes) * 8 / bits(a.format);
      if (a.strides[0] % multiple != 0) {
        refuse("a has rows {} elements apart, this plan needs a multiple of {}: pad them", a.strides[0], multiple);
      }
    } else if (const std::string sentence = alignment_obstacle(alignment, a, "a", false); !sentence.empty()) {
      refuse("{}, as this plan needs it", sentence);
    }
  }
}

/// A call's tensors in their order, those of a dense product without biases and timestamps, and all that there can be.
std::array<Tensor, tensors::dense_tensor_count> dense_order(const ProductTensors& of, const WeightViews& weights) {
  return {of.a, weights.gate, weights.up, of.c};
}
std::array<Tensor, strategies::moe_layer::routed_tensor_count> whole_order(const ProductTensors& of,
                                                                           const PlanWeights& weights) {
  Tensor timestamps;
  timestamps.data = weights.timestamps;
  const WeightViews& views = weights.views;
  return {of.a,       views.gate,     views.up,   of.c,        views.gate_bias, views.up_bias, of.groups,
          of.row_ids, of.row_weights, timestamps, of.topk_ids, of.inverse,      of.x};
}

/// Stand-ins for the tensors of a call of `rows` rows, with its weights.
auto example_order(const ProductProblem& p, std::int64_t rows, DeviceId device, const PlanWeights& weights) {
  const bool is_masked = p.layout == ProductRows::masked;
  const bool is_gathered = p.layout == ProductRows::gathered;
  const auto matrix = [&](Format format, std::int64_t count, std::int64_t columns) {
    return is_masked ? stand_in(format, {p.experts, count, columns}, device)
                     : stand_in(format, {count, columns}, device);
  };
  const auto list = [&](Format format, std::int64_t count) { return stand_in(format, {count}, device); };
  const Tensor row_weights = is_masked ? stand_in(Format::fp32, {p.experts, rows}, device) : list(Format::fp32, rows);
  return whole_order({.a = matrix(p.a, is_gathered ? p.tokens : rows, p.k),
                      .c = matrix(p.out, rows, p.n),
                      .groups = p.is_dense() ? Tensor{} : list(Format::int32, p.experts + (is_masked ? 0 : 1)),
                      .row_ids = is_gathered ? list(Format::int32, rows) : Tensor{},
                      .row_weights = p.row_weights ? row_weights : Tensor{}},
                     weights);
}

}  // namespace

ProductPlan::ProductPlan(const Device& device, const ProductProblem& problem, std::vector<PlannedRows> calls,
                         PlanWeights weights)
    : problem_(problem), device_(device.id()), strategy_(calls.back().call.strategy), weights_(std::move(weights)) {
  const bool is_run = !problem.is_dense() || (problem.rows > 0 && problem.n > 0);
  if (is_run && device_.kind == DeviceKind::cuda) {
    load_programs(device_.ordinal, calls);
  }
  for (PlannedRows& planned : calls) {
    data_alignment_ = std::max(data_alignment_, planned.call.data_alignment);
    if (is_run) {
      load(std::move(planned));
    }
  }
}

void ProductPlan::load(PlannedRows planned) {
  const auto all = example_order(problem_, planned.rows, device_, weights_);
  rows_.push_back(planned.rows);
  calls_.emplace_back(device_, std::move(planned.call), strategies::CallTensors{all, nullptr, weights_.packed});
  workspace_bytes_ = std::max(workspace_bytes_, calls_.back().workspace_bytes());
}

void ProductPlan::run(Stream stream, const ProductTensors& of, void* workspace) const {
  enqueue(stream, of, workspace, false);
}

void ProductPlan::run_prepared(Stream stream, const ProductTensors& of, void* workspace) const {
  enqueue(stream, of, workspace, true);
}

void ProductPlan::prepare(Stream stream, const Tensor& a, void* workspace) const {
  if (a.shape[0] == 0 || problem_.n == 0) {
    return;
  }
  const DeviceCall& call = call_for(a.shape[0]);
  if (const std::size_t steps = call.planned().preparation_steps; steps > 0) {
    require_on_gpu(a.data, "a");
    require_on_gpu(workspace, "workspace");
    run_steps(call, stream, {a, no_tensor}, workspace, 0, steps);
  }
}

void ProductPlan::enqueue(Stream stream, const ProductTensors& of, void* workspace, bool is_prepared) const {
  if (of.c.elements() == 0 && (problem_.is_dense() || device_.kind == DeviceKind::cuda)) {
    if (!problem_.is_dense()) {
      require_on_gpu(workspace, "workspace");
      runtime::fill_async(workspace, 0, sizeof(std::uint32_t), stream, device_.ordinal);
    }
    return;
  }
  const DeviceCall& call = call_for(of.c.shape[of.c.rank == 3 ? 1 : 0]);
  if (device_.kind == DeviceKind::cuda) {
    require_on_gpu(of.a.data, "a");
    require_on_gpu(of.c.data, "c");
    if (call.workspace_bytes() > 0) {
      require_on_gpu(workspace, "workspace");
    }
    require_aligned(problem_, call.planned(), of.a);
  }
  run_steps(call, stream, of, workspace, is_prepared ? call.planned().preparation_steps : 0,
            call.planned().steps.size());
}

void ProductPlan::run_steps(const DeviceCall& call, Stream stream, const ProductTensors& of, void* workspace,
                            std::size_t first_step, std::size_t last_step) const {
  if (problem_.is_dense() && !problem_.bias && weights_.timestamps == nullptr) {
    const auto all = dense_order(of, weights_.views);
    call.run(stream, {all, workspace, weights_.packed}, first_step, last_step);
  } else {
    const auto all = whole_order(of, weights_);
    call.run(stream, {all, workspace, weights_.packed}, first_step, last_step);
  }
}

GroupedStatus ProductPlan::status(Stream stream, const void* workspace) const {
  return {status_flags(stream, workspace, workspace_bytes_, device_)};
}

bool ProductPlan::settles() const {
  return std::all_of(calls_.begin(), calls_.end(),
                     [](const DeviceCall& call) { return strategies::moe_layer::settles(call.planned()); });
}

const DeviceCall& ProductPlan::call_for(std::int64_t rows) const {
  return calls_[static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), rows) - rows_.begin())];
}

void ProductPlan::require_on_gpu(const void* pointer, const char* argument) const {
  runtime::require_on_gpu(pointer, device_.ordinal, argument);
}

namespace {

/// Weights that a strategy packs are packed here, at plan time.
PlanPointer plan_matrices(const Device& device, const ProductProblem& problem, const GroupedWeights& weights,
                          const PackedPointer& keeps, const DualGemmOptions& options, const CallChange& change) {
  PlanWeights of{.views = weight_views(weights), .keeps = keeps};
  const auto obstacle = [&](const PlannedCall& call) { return weights_obstacle(call, of.views); };
  std::vector<PlannedRows> calls = planned_calls(device, problem, options, obstacle, change);
  if (const PlannedCall& call = calls.back().call; call.packing != nullptr) {
    of.keeps = pack_by(call, device, weights, numerics_of(call.knobs));
    of.views = of.keeps->views();
    of.packed = of.keeps->packed();
  }
  if (keeps == nullptr && (of.packed == nullptr || problem.is_dense())) {
    of.where_they_lie = weights;
  }
  return std::make_shared<const ProductPlan>(device, problem, std::move(calls), std::move(of));
}

/// Calls read the weights in place, packed or not.
PlanPointer plan_on_cpu(const Device& device, const ProductProblem& problem, const GroupedWeights& weights,
                        const PackedPointer& keeps, const DualGemmOptions& options, const CallChange& change) {
  require_exact_on_cpu(device, numerics_of(options.knobs));
  return std::make_shared<const ProductPlan>(
      device, problem, planned_calls(device, problem, options, {}, change),
      PlanWeights{.views = weight_views(weights), .keeps = keeps, .where_they_lie = weights});
}

std::string layout_obstacle(const PlannedCall& call, const PackedProduct& packed, const ProductProblem& problem) {
  if (call.packed_layout == packed.layout()) {
    return "";
  }
  return fmt::format(
      "strategy {} does not read weights as these were packed: plan it from {}, or leave the strategy empty",
      call.strategy, is_dual_gemm(problem) ? "b1 and b2" : "the weights");
}

}  // namespace

PlanPointer plan_product(const Device& device, const ProductProblem& problem, const PackedPointer& weights,
                         const DualGemmOptions& options, const CallChange& change) {
  if (device.kind() == DeviceKind::cpu) {
    return plan_on_cpu(device, problem, weights->weights(), weights, options, change);
  }
  if (weights->is_matrices()) {
    return plan_matrices(device, problem, weights->weights(), weights, options, change);
  }
  DualGemmOptions of_weights = options;
  ask_for(weights->numerics(), of_weights.knobs);
  const auto obstacle = [&](const PlannedCall& call) { return layout_obstacle(call, *weights, problem); };
  return std::make_shared<const ProductPlan>(
      device, problem, planned_calls(device, problem, of_weights, obstacle, change),
      PlanWeights{.views = weights->views(), .packed = weights->packed(), .keeps = weights});
}

PlanPointer plan_product(const Device& device, const ProductProblem& problem, const GroupedWeights& weights,
                         const DualGemmOptions& options, const CallChange& change) {
  if (device.kind() == DeviceKind::cpu) {
    return plan_on_cpu(device, problem, weights, nullptr, options, change);
  }
  require_weights_on_gpu(weights, device.id().ordinal);
  return plan_matrices(device, problem, weights, nullptr, options, change);
}

std::string weights_obstacle(const PlannedCall& call, const WeightViews& views) {
  for (const strategies::Alignment& alignment : call.alignments) {
    const bool is_gate = alignment.tensor == tensors::gate_index;
    if (is_gate || (alignment.tensor == tensors::up_index && views.up.rank > 0)) {
      if (std::string sentence = alignment_obstacle(alignment, is_gate ? views.gate : views.up,
                                                    is_gate ? "b1 (gate)" : "b2 (up)", views.gate.rank == 2);
          !sentence.empty()) {
        return sentence;
      }
    }
  }
  return "";
}

Tensor stand_in(Format format, std::initializer_list<std::int64_t> shape, DeviceId device) {
  Tensor tensor = Tensor::contiguous(stand_in_address(), format, shape, device);
  tensor.scales.data = stand_in_address();
  return tensor;
}

}  // namespace thresher::ops
