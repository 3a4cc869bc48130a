#include "cpu/dual_gemm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "cpu/interleaved.hpp"
#include "cpu/operand.hpp"
#include "cpu/parallel.hpp"
#include "cpu/product.hpp"
#include "cpu/two_pass.hpp"
#include "cpu/workspace.hpp"
#include "formats/quantize_row.hpp"
#include "thresher/error.hpp"

namespace thresher::cpu {
namespace {

/// A strategy in the CPU's native product type, and in float32 for values that are not exact in bf16.
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

/// Quantizes float32 outputs once their row is complete: only then are its scales known.
class QuantizedOutput : public DualGemmKernel {
 public:
  QuantizedOutput(const DualGemmProblem& problem, std::unique_ptr<const DualGemmKernel> in_float32, int threads)
      : n_(problem.n), threads_(threads), in_float32_(std::move(in_float32)) {
    own_ = layout_.add(in_float32_->workspace_bytes());
    values_ = layout_.add(static_cast<std::size_t>(problem.m * problem.n) * sizeof(float));
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return layout_.bytes(); }

  void run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
           void* workspace) const override {
    auto* const bytes = static_cast<std::byte*>(workspace);
    auto* const values = reinterpret_cast<float*>(bytes + values_);
    in_float32_->run(a, b1_gate, b2_up, Tensor::contiguous(values, Format::fp32, {a.shape[0], n_}), bytes + own_);
    parallel_for(threads_, a.shape[0], [&](std::int64_t row, int) {
      formats::quantize_row(c, row, {values + row * n_, static_cast<std::size_t>(n_)});
    });
  }

 private:
  std::int64_t n_;
  int threads_;
  std::unique_ptr<const DualGemmKernel> in_float32_;
  WorkspaceLayout layout_;
  std::size_t own_ = 0;
  std::size_t values_ = 0;
};

template <typename Strategy>
std::unique_ptr<const DualGemmKernel> planned(const DualGemmProblem& problem, ProductType type, int threads) {
  return std::make_unique<Planned<Strategy>>(problem, type, threads);
}

struct Named {
  std::string_view name;
  decltype(&planned<InterleavedDualGemm>) plan;
};

/// The default first.
constexpr std::array strategies{Named{"interleaved", &planned<InterleavedDualGemm>},
                                Named{"two_pass", &planned<TwoPassDualGemm>}};

}  // namespace

std::vector<std::string> dual_gemm_strategies() {
  std::vector<std::string> names;
  for (const Named& strategy : strategies) {
    names.emplace_back(strategy.name);
  }
  return names;
}

std::unique_ptr<const DualGemmKernel> plan_dual_gemm(std::string_view strategy, const DualGemmProblem& problem,
                                                     int threads) {
  const auto* const found =
      std::find_if(strategies.begin(), strategies.end(), [&](const Named& one) { return one.name == strategy; });
  if (found == strategies.end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no CPU dual-GEMM strategy '{}', expected one of {}",
                                                         strategy, fmt::join(dual_gemm_strategies(), ", ")));
  }
  const ProductType type = product_type_of(problem.a, problem.b);
  const int resolved = resolve_threads(threads);
  if (!format_traits(problem.out).is_quantized_output()) {
    return found->plan(problem, type, resolved);
  }
  DualGemmProblem in_float32 = problem;
  in_float32.out = Format::fp32;
  return std::make_unique<QuantizedOutput>(problem, found->plan(in_float32, type, resolved), resolved);
}

}  // namespace thresher::cpu
