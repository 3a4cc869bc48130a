#include "thresher/dual_gemm.hpp"

#include "ops/products.hpp"
#include "ops/validate_product.hpp"

namespace thresher {

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

std::size_t DualGemm::workspace_bytes() const { return backend_->workspace_bytes(); }
const std::string& DualGemm::strategy() const { return backend_->strategy(); }

std::int64_t PackedWeights::n() const noexcept { return storage_->shape().n; }
std::int64_t PackedWeights::k() const noexcept { return storage_->shape().k; }
Format PackedWeights::format() const noexcept { return storage_->shape().format; }
Numerics PackedWeights::numerics() const noexcept { return storage_->numerics(); }
const Device& PackedWeights::device() const noexcept { return storage_->device(); }

PackedWeights pack(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, const PackOptions& options) {
  ops::validate_pair(b1_gate, b2_up, device.id());
  return PackedWeights(ops::pack_product(device, {.b1 = b1_gate, .b2 = b2_up}, options));
}

DualGemm plan(const Device& device, const DualGemmProblem& problem, const PackedWeights& weights,
              const DualGemmOptions& options) {
  return {problem, ops::plan_dual_gemm(device, problem, weights, options)};
}

DualGemm plan(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up,
              const DualGemmOptions& options) {
  return {problem, ops::plan_dual_gemm(device, problem, b1_gate, b2_up, options)};
}

std::vector<std::string> dual_gemm_strategies(const Device& device) {
  return ops::strategy_names(ops::Product::dual_gemm, device);
}

}  // namespace thresher
