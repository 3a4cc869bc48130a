#include "cpu/dual_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cpu/interleaved.hpp"
#include "cpu/operand.hpp"
#include "cpu/parallel.hpp"
#include "cpu/product.hpp"
#include "cpu/two_pass.hpp"
#include "thresher/error.hpp"

namespace thresher::cpu {
namespace {

/// A strategy in the CPU's own product type and, where bf16 may not do for every value, the interleaved one in float32.
template <typename Strategy>
class Planned : public DualGemmKernel {
 public:
  Planned(const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up, ProductType type, int threads)
      : m_(problem.m), b1_gate_(b1_gate), b2_up_(b2_up), first_(problem, type, threads) {
    if (type == ProductType::bf16 && may_be_inexact_in_bf16(problem.a, problem.b)) {
      in_float32_.emplace(problem, ProductType::float32, threads);
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return std::max(first_.workspace_bytes(), in_float32_ ? in_float32_->workspace_bytes() : 0);
  }

  void run(const Tensor& a, const Tensor& c, void* workspace) const override {
    if (m_ == 0 || first_.run(a, b1_gate_, b2_up_, c, workspace)) {
      return;
    }
    if (!in_float32_ || !in_float32_->run(a, b1_gate_, b2_up_, c, workspace)) {
      throw Error(ErrorCode::internal, "a CPU dual GEMM was refused in bf16 and has no float32 form");
    }
  }

 private:
  std::int64_t m_;
  Tensor b1_gate_;
  Tensor b2_up_;
  Strategy first_;
  std::optional<InterleavedDualGemm> in_float32_;
};

}  // namespace

std::vector<std::string> dual_gemm_strategies() { return {"interleaved", "two_pass"}; }

std::unique_ptr<const DualGemmKernel> plan_dual_gemm(std::string_view strategy, const DualGemmProblem& problem,
                                                     const Tensor& b1_gate, const Tensor& b2_up, int threads) {
  const int team = resolve_threads(threads);
  const ProductType type = native_product_type();
  if (strategy == "interleaved") {
    return std::make_unique<Planned<InterleavedDualGemm>>(problem, b1_gate, b2_up, type, team);
  }
  if (strategy == "two_pass") {
    return std::make_unique<Planned<TwoPassDualGemm>>(problem, b1_gate, b2_up, type, team);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no CPU dual-GEMM strategy '{}', expected interleaved or two_pass", strategy));
}

}  // namespace thresher::cpu
