#pragma once
/// The public products without their objects: layers are made of these. Every function validates.
#include "ops/product_plan.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_product.hpp"

namespace thresher::ops {

/// As the public `plan` of each product does.
[[nodiscard]] PlanPointer plan_dual_gemm(const Device& device, const DualGemmProblem& problem,
                                         const PackedWeights& weights, const DualGemmOptions& options);
[[nodiscard]] PlanPointer plan_dual_gemm(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate,
                                         const Tensor& b2_up, const DualGemmOptions& options);
[[nodiscard]] PlanPointer plan_gemm(const Device& device, const GemmProblem& problem, const PackedGemmWeights& weights,
                                    const GemmOptions& options);
[[nodiscard]] PlanPointer plan_gemm(const Device& device, const GemmProblem& problem, const GemmWeights& weights,
                                    const GemmOptions& options);
[[nodiscard]] PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem,
                                       const PackedGroupedWeights& weights, const GroupedOptions& options,
                                       const CallChange& change = {});
[[nodiscard]] PlanPointer plan_grouped(const Device& device, const GroupedProblem& problem,
                                       const GroupedWeights& weights, const GroupedOptions& options,
                                       const CallChange& change = {});

/// The weights of a GEMM, which are packed as those of one expert.
[[nodiscard]] GroupedWeights of_one_expert(const GemmWeights& weights);

[[nodiscard]] inline RunPlace place_of(const ProductPlan& plan, const void* workspace) {
  return {workspace, plan.workspace_bytes(), plan.data_alignment(), plan.device()};
}

/// As the public `run` does.
void run_dense(const ProductPlan& plan, Stream stream, const Tensor& a, const Tensor& c, void* workspace);
/// `topk_ids` and `inverse`: where the call sorts a layer's choices.
void run_grouped(const ProductPlan& plan, Stream stream, const GroupedTensors& tensors, void* workspace,
                 const Tensor& topk_ids = no_tensor, const Tensor& inverse = no_tensor);

}  // namespace thresher::ops
