#include "thresher/gemm.hpp"

#include <utility>

#include "core/grouped_weights.hpp"
#include "ops/device_operations.hpp"
#include "ops/gemm_problem.hpp"
#include "ops/grouped_backend.hpp"
#include "ops/grouped_choice.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate.hpp"
#include "ops/validate_grouped.hpp"

namespace thresher {
namespace {

/// Its extents and formats, which the plain product shares; it has no activation.
DualGemmProblem extents_of(const GemmProblem& problem) {
  return {.m = problem.m, .n = problem.n, .k = problem.k, .a = problem.a, .b = problem.b, .out = problem.out};
}

void validate(const GemmProblem& problem) {
  ops::check_unscaled_output("problem.out", problem.out);
  ops::validate(extents_of(problem));
}

void check_bias(const GemmProblem& problem, bool has_bias) {
  if (has_bias != problem.bias) {
    ops::refuse("the weights have {} bias, but problem.bias is {}", has_bias ? "a" : "no", problem.bias);
  }
}

void validate_weights(const GemmWeights& weights, DeviceId device) {
  const Tensor& b = weights.b;
  ops::check_operand_format("b", b.format);
  ops::check_matrix("b", b, b.format, b.shape[0], b.shape[1], device, OperandRole::weights);
  if (format_traits(b.format).has_scales() && b.elements() > 0 && !b.is_contiguous()) {
    ops::refuse("b is {} with the row stride {}, expected a contiguous matrix, whose scales are too", name(b.format),
                b.strides[0]);
  }
  const Tensor& bias = weights.bias;
  if (bias.rank == 0) {
    return;
  }
  ops::check_unscaled_output("bias", bias.format);
  ops::check_place("bias", bias, bias.format, {b.shape[0]}, device, static_cast<std::size_t>(bits(bias.format)) / 8);
  if (bias.elements() > 0) {
    ops::check_strides("bias", bias, 1);
  }
}

GroupedWeights of_one_expert(const GemmWeights& weights) {
  return {.b1 = stack_of_one(weights.b), .bias1 = stack_of_one(weights.bias)};
}

}  // namespace

GroupedProblem ops::one_expert(const GemmProblem& problem) {
  return {.experts = 1,
          .rows = problem.m,
          .n = problem.n,
          .k = problem.k,
          .a = problem.a,
          .b = problem.b,
          .out = problem.out,
          .bias = problem.bias};
}

void Gemm::run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  ops::validate_run(extents_of(problem_), a, c, workspace, workspace_bytes(), backend_->data_alignment(),
                    backend_->device());
  for (const auto& [argument, tensor] :
       {std::pair{"b", &backend_->weights().b1}, std::pair{"bias", &backend_->weights().bias1}}) {
    if (tensor->rank > 0 && tensor->data != nullptr) {
      ops::check_not_overlapping(c, argument, *tensor);
      ops::check_outside_workspace(argument, *tensor, workspace, workspace_bytes());
    }
  }
  backend_->run(stream, {.a = a, .c = c}, {}, workspace);
}

std::size_t Gemm::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& Gemm::strategy() const { return backend_->strategy(); }

PackedGemmWeights::PackedGemmWeights(PackedGroupedWeights weights) : grouped_(std::move(weights)) {
  if (grouped_.experts() != 1 || grouped_.matrices() != 1) {
    ops::refuse("the weights are {} of {} experts, expected one matrix of one",
                grouped_.matrices() == 2 ? "gate and up" : "a matrix", grouped_.experts());
  }
}

PackedGemmWeights pack(const Device& device, const GemmWeights& weights, const PackOptions& options) {
  validate_weights(weights, device.id());
  return PackedGemmWeights(
      PackedGroupedWeights(ops::operations_for(device.kind()).pack(device, of_one_expert(weights), options)));
}

Gemm plan(const Device& device, const GemmProblem& problem, const PackedGemmWeights& weights,
          const GemmOptions& options) {
  validate(problem);
  if (weights.device().id() != device.id()) {
    ops::refuse("the weights were packed for {}, not for {}: pack them again", weights.device().name(), device.name());
  }
  check_bias(problem, weights.has_bias());
  ops::validate_weights(ops::one_expert(problem), weights.grouped().storage().shape());
  ops::require_grouped_strategy(device, options.strategy);
  return {problem, ops::operations_for(device.kind())
                       .plan_packed(device, ops::one_expert(problem), weights.grouped(), options, ops::Bounds::none)};
}

Gemm plan(const Device& device, const GemmProblem& problem, const GemmWeights& weights, const GemmOptions& options) {
  validate(problem);
  check_bias(problem, weights.bias.rank > 0);
  validate_weights(weights, device.id());
  ops::check_matrix("b", weights.b, problem.b, problem.n, problem.k, device.id(), OperandRole::weights);
  ops::require_grouped_strategy(device, options.strategy);
  return {problem, ops::operations_for(device.kind())
                       .plan_raw(device, ops::one_expert(problem), of_one_expert(weights), options, ops::Bounds::none)};
}

std::vector<std::string> gemm_strategies(const Device& device) { return grouped_gemm_strategies(device); }

}  // namespace thresher
