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
  Planned(const DualGemmProblem& problem, ProductType type, int threads) : first_(problem, type, threads) {
    if (type == ProductType::bf16 && may_be_inexact_in_bf16(problem.a, problem.b)) {
      in_float32_.emplace(problem, ProductType::float32, threads);
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return std::max(first_.workspace_bytes(), in_float32_ ? in_float32_->workspace_bytes() : 0);
  }

  void run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
           void* workspace) const override {
    if (a.shape[0] == 0 || first_.run(a, b1_gate, b2_up, c, workspace)) {
      return;
    }
    if (!in_float32_ || !in_float32_->run(a, b1_gate, b2_up, c, workspace)) {
      throw Error(ErrorCode::internal, "a CPU dual GEMM was refused in bf16 and has no float32 form");
    }
  }

 private:
  Strategy first_;
  std::optional<InterleavedDualGemm> in_float32_;
};

}  // namespace

std::vector<std::string> dual_gemm_strategies() { return {"interleaved", "two_pass"}; }

std::unique_ptr<const DualGemmKernel> plan_dual_gemm(std::string_view strategy, const DualGemmProblem& problem,
                                                     int threads) {
  const int team = resolve_threads(threads);
  const ProductType type = native_product_type();
  if (strategy == "interleaved") {
    return std::make_unique<Planned<InterleavedDualGemm>>(problem, type, team);
  }
  if (strategy == "two_pass") {
    return std::make_unique<Planned<TwoPassDualGemm>>(problem, type, team);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no CPU dual-GEMM strategy '{}', expected interleaved or two_pass", strategy));
}

}  // namespace thresher::cpu
