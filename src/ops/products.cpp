#include "ops/products.hpp"

namespace thresher::ops {

PlanPointer plan_dual_gemm(const Device& device, const DualGemmProblem& problem, const PackedWeights& weights,
                           const DualGemmOptions& options) {
  const PackedProduct& packed = weights.storage();
  validate(problem);
  check_same_device(packed.device(), device);
  validate_weights(problem, packed.views().gate, packed.views().up, device.id());
  require_strategy(Product::dual_gemm, device, options.strategy);
  return plan_product(device, problem, weights.shared(), options);
}

PlanPointer plan_dual_gemm(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate,
                           const Tensor& b2_up, const DualGemmOptions& options) {
  validate(problem);
  validate_weights(problem, b1_gate, b2_up, device.id());
  require_strategy(Product::dual_gemm, device, options.strategy);
  return plan_product(device, problem, GroupedWeights{.b1 = b1_gate, .b2 = b2_up}, options);
}

PlanPointer plan_gemm(const Device& device, const GemmProblem& problem, const PackedGemmWeights& weights,
                      const GemmOptions& options) {
  validate(problem);
  check_same_device(weights.device(), device);
  check_bias(problem, weights.has_bias());
  validate_weights(problem, weights.grouped().storage().shape());
  require_strategy(Product::gemm, device, options.strategy);
  return plan_product(device, problem, weights.grouped().shared(), options);
}

PlanPointer plan_gemm(const Device& device, const GemmProblem& problem, const GemmWeights& weights,
                      const GemmOptions& options) {
  validate(problem);
  check_bias(problem, weights.bias.rank > 0);
  validate_weights(weights, device.id());
  check_matrix("b", weights.b, problem.b, problem.n, problem.k, device.id(), OperandRole::weights);
  require_strategy(Product::gemm, device, options.strategy);
  return plan_product(device, problem, of_one_expert(weights), options);
}

PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem, const PackedGroupedWeights& weights,
                         const GroupedOptions& options, const CallChange& change) {
  validate(problem);
  check_same_device(weights.device(), device);
  validate_weights(problem, weights.storage().shape());
  require_strategy(Product::grouped, device, options.strategy);
  return plan_product(device, problem, weights.shared(), options, change);
}

PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem, const GroupedWeights& weights,
                         const GroupedOptions& options, const CallChange& change) {
  validate(problem);
  validate_weights(weights, device.id());
  validate_weights(problem, shape_of(weights));
  require_strategy(Product::grouped, device, options.strategy);
  return plan_product(device, problem, weights, options, change);
}

GroupedWeights of_one_expert(const GemmWeights& weights) {
  return {.b1 = stack_of_one(weights.b), .bias1 = stack_of_one(weights.bias)};
}

void run_dense(const ProductPlan& plan, Stream stream, const Tensor& a, const Tensor& c, void* workspace) {
  validate_run(plan.problem(), a, c, plan.weights(), place_of(plan, workspace));
  plan.run(stream, {a, c}, workspace);
}

void run_grouped(const ProductPlan& plan, Stream stream, const GroupedTensors& tensors, void* workspace,
                 const Tensor& topk_ids, const Tensor& inverse) {
  validate_run(plan.problem(), tensors, plan.weights(), place_of(plan, workspace));
  const Tensor& groups = tensors.counts.rank > 0 ? tensors.counts : tensors.offsets;
  plan.run(stream, {tensors.a, tensors.c, groups, tensors.row_ids, tensors.row_weights, topk_ids, inverse}, workspace);
}

}  // namespace thresher::ops
