// The public products. They validate; a ProductPlan does the rest.
#include <utility>

#include "ops/product_plan.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_product.hpp"

namespace thresher {
namespace ops {
namespace {

RunPlace place_of(const ProductPlan& plan, const void* workspace) {
  return {workspace, plan.workspace_bytes(), plan.data_alignment(), plan.device()};
}

void run_dense(const ProductPlan& plan, Stream stream, const Tensor& a, const Tensor& c, void* workspace) {
  validate_run(plan.problem(), a, c, plan.weights(), place_of(plan, workspace));
  plan.run(stream, {a, c}, workspace);
}

/// Packed weights of a plain or a grouped product.
PlanPointer plan_packed(const Device& device, const ProductProblem& problem, const PackedPointer& weights,
                        const DualGemmOptions& options, const CallChange& change = {}) {
  validate(problem);
  check_same_device(weights->device(), device);
  validate_weights(problem, weights->shape());
  return plan_product(device, problem, weights, options, change);
}

void check_ungated(const GemmProblem& problem) {
  if (is_gated(problem.activation)) {
    refuse("problem.activation is {}, which is of gate and up, expected relu2 or none: use the dual GEMM",
           name(problem.activation->kind));
  }
}

/// The weights of a GEMM are packed as those of one expert.
GroupedWeights of_one_expert(const GemmWeights& weights) {
  return {.b1 = stack_of_one(weights.b), .bias1 = stack_of_one(weights.bias)};
}

}  // namespace

PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem, const PackedGroupedWeights& weights,
                         const GroupedOptions& options, const CallChange& change) {
  return plan_packed(device, problem, weights.shared(), options, change);
}

PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
                         const GroupedOptions& options, const CallChange& change) {
  validate(problem);
  validate_weights(weights, device.id());
  validate_weights(problem, shape_of(weights));
  return plan_product(device, problem, weights, options, change);
}

void run_grouped(const ProductPlan& plan, Stream stream, const GroupedTensors& tensors, void* workspace,
                 const strategies::moe_layer::RoutedTensors& routed) {
  validate_run(plan.problem(), tensors, plan.weights(), place_of(plan, workspace));
  const Tensor& groups = tensors.counts.rank > 0 ? tensors.counts : tensors.offsets;
  plan.run(
      stream,
      {tensors.a, tensors.c, groups, tensors.row_ids, tensors.row_weights, routed.topk_ids, routed.inverse, routed.x},
      workspace);
}

}  // namespace ops

void DualGemm::run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  ops::run_dense(*backend_, stream, a, c, workspace);
}

void DualGemm::prepare(Stream stream, const Tensor& a, void* workspace) const {
  ops::validate_tokens(backend_->problem(), a, ops::place_of(*backend_, workspace));
  backend_->prepare(stream, a, workspace);
}

void DualGemm::run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  ops::validate_run(backend_->problem(), a, c, backend_->weights(), ops::place_of(*backend_, workspace));
  backend_->run_prepared(stream, {a, c}, workspace);
}

void Gemm::run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  ops::run_dense(*backend_, stream, a, c, workspace);
}

void GroupedGemm::run(Stream stream, const GroupedTensors& tensors, void* workspace) const {
  ops::run_grouped(*backend_, stream, tensors, workspace);
}

GroupedStatus GroupedGemm::status(Stream stream, const void* workspace) const {
  ops::check_workspace(workspace, workspace_bytes());
  return backend_->status(stream, workspace);
}

std::size_t DualGemm::workspace_bytes() const { return backend_->workspace_bytes(); }
std::size_t Gemm::workspace_bytes() const { return backend_->workspace_bytes(); }
std::size_t GroupedGemm::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& DualGemm::strategy() const { return backend_->strategy(); }
const std::string& Gemm::strategy() const { return backend_->strategy(); }
const std::string& GroupedGemm::strategy() const { return backend_->strategy(); }

std::int64_t PackedWeights::n() const noexcept { return storage_->shape().n; }
std::int64_t PackedWeights::k() const noexcept { return storage_->shape().k; }
Format PackedWeights::format() const noexcept { return storage_->shape().format; }
Numerics PackedWeights::numerics() const noexcept { return storage_->numerics(); }
const Device& PackedWeights::device() const noexcept { return storage_->device(); }

std::int64_t PackedGroupedWeights::experts() const noexcept { return storage_->shape().experts; }
std::int64_t PackedGroupedWeights::n() const noexcept { return storage_->shape().n; }
std::int64_t PackedGroupedWeights::k() const noexcept { return storage_->shape().k; }
int PackedGroupedWeights::matrices() const noexcept { return storage_->shape().matrices; }
Format PackedGroupedWeights::format() const noexcept { return storage_->shape().format; }
bool PackedGroupedWeights::has_bias() const noexcept { return storage_->shape().has_bias; }
Numerics PackedGroupedWeights::numerics() const noexcept { return storage_->numerics(); }
const Device& PackedGroupedWeights::device() const noexcept { return storage_->device(); }

PackedGemmWeights::PackedGemmWeights(PackedGroupedWeights weights) : grouped_(std::move(weights)) {
  if (grouped_.experts() != 1 || grouped_.matrices() != 1) {
    ops::refuse("the weights are {} of {} experts, expected one matrix of one",
                grouped_.matrices() == 2 ? "gate and up" : "a matrix", grouped_.experts());
  }
}

PackedWeights pack(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, const PackOptions& options) {
  ops::validate_pair(b1_gate, b2_up, device.id());
  return PackedWeights(ops::pack_product(device, {.b1 = b1_gate, .b2 = b2_up}, options));
}

PackedGemmWeights pack(const Device& device, const GemmWeights& weights, const PackOptions& options) {
  ops::validate_weights(weights, device.id());
  return PackedGemmWeights(PackedGroupedWeights(ops::pack_product(device, ops::of_one_expert(weights), options)));
}

PackedGroupedWeights pack(const Device& device, const GroupedWeights& weights, const PackOptions& options) {
  ops::validate_weights(weights, device.id());
  return PackedGroupedWeights(ops::pack_product(device, weights, options));
}

DualGemm plan(const Device& device, const DualGemmProblem& problem, const PackedWeights& weights,
              const DualGemmOptions& options) {
  const WeightViews& views = weights.storage().views();
  ops::check_gated(problem.activation);
  ops::validate(problem);
  ops::check_same_device(weights.device(), device);
  ops::validate_weights(problem, views.gate, views.up, device.id());
  return {problem, ops::plan_product(device, problem, weights.shared(), options)};
}

DualGemm plan(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up,
              const DualGemmOptions& options) {
  ops::check_gated(problem.activation);
  ops::validate(problem);
  ops::validate_weights(problem, b1_gate, b2_up, device.id());
  return {problem, ops::plan_product(device, problem, GroupedWeights{.b1 = b1_gate, .b2 = b2_up}, options)};
}

Gemm plan(const Device& device, const GemmProblem& problem, const PackedGemmWeights& weights,
          const GemmOptions& options) {
  ops::check_ungated(problem);
  return {problem, ops::plan_packed(device, problem, weights.grouped().shared(), options)};
}

Gemm plan(const Device& device, const GemmProblem& problem, const GemmWeights& weights, const GemmOptions& options) {
  ops::check_ungated(problem);
  ops::validate(problem);
  ops::check_bias(problem, weights.bias.rank > 0);
  ops::validate_weights(weights, device.id());
  ops::check_matrix("b", weights.b, problem.b, problem.n, problem.k, device.id(), OperandRole::weights);
  return {problem, ops::plan_product(device, problem, ops::of_one_expert(weights), options)};
}

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const PackedGroupedWeights& weights,
                 const GroupedOptions& options) {
  return {problem, ops::plan_grouped(device, problem, weights, options)};
}

GroupedGemm plan(const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
                 const GroupedOptions& options) {
  return {problem, ops::plan_grouped(device, problem, weights, options)};
}

std::vector<std::string> dual_gemm_strategies(const Device& device) {
  return ops::strategy_names(ops::Product::dual_gemm, device);
}

std::vector<std::string> gemm_strategies(const Device& device) {
  return ops::strategy_names(ops::Product::gemm, device);
}

std::vector<std::string> grouped_gemm_strategies(const Device& device) {
  return ops::strategy_names(ops::Product::grouped, device);
}

}  // namespace thresher
