#include "thresher/gemm.hpp"

#include <utility>

#include "ops/gemm_problem.hpp"
#include "ops/products.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/validate_product.hpp"

namespace thresher {

GroupedProblem ops::one_expert(const GemmProblem& problem) { return ProductProblem(problem).grouped(); }

void Gemm::run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
  ops::run_dense(*backend_, stream, a, c, workspace);
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
  ops::validate_weights(weights, device.id());
  return PackedGemmWeights(PackedGroupedWeights(ops::pack_product(device, ops::of_one_expert(weights), options)));
}

Gemm plan(const Device& device, const GemmProblem& problem, const PackedGemmWeights& weights,
          const GemmOptions& options) {
  return {problem, ops::plan_gemm(device, problem, weights, options)};
}

Gemm plan(const Device& device, const GemmProblem& problem, const GemmWeights& weights, const GemmOptions& options) {
  return {problem, ops::plan_gemm(device, problem, weights, options)};
}

std::vector<std::string> gemm_strategies(const Device& device) {
  return ops::strategy_names(ops::Product::gemm, device);
}

}  // namespace thresher
