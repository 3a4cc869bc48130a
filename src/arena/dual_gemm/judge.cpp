#include "arena/dual_gemm/judge.hpp"

#include <algorithm>
#include <cmath>

#include "arena/dual_gemm/comparison.hpp"
#include "arena/dual_gemm/mistakes.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/fold.hpp"
#include "reference/plain_sums.hpp"
#include "reference/requantised.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {
namespace {

using reference::Region;
using reference::Rule;
using reference::Verdict;

Region region_for(const DualGemmProblem& problem, std::uint64_t seed) {
  const double products =
      2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  if (products <= whole_output_products) {
    return reference::whole(problem);
  }
  const double share_per_side = std::sqrt(whole_output_products / products);
  const auto per_tile = static_cast<std::int64_t>(share_per_side * static_cast<double>(reference::tile_side));
  return reference::with_whole_scales(reference::sample_every_tile(problem, std::max<std::int64_t>(per_tile, 4), seed),
                                      problem.out, problem.n);
}

class DualGemmJudge final : public Judge {
 public:
  DualGemmJudge(const DualGemmProblem& problem, Distribution distribution, const std::vector<HostTensor>& inputs,
                const Maker& maker, std::uint64_t seed)
      : problem_(problem), rule_(dual_gemm_rule(problem, distribution)), region_(region_for(problem, seed)) {
    const Tensor a = inputs.at(0).view();
    const Tensor b1 = inputs.at(1).view();
    const Tensor b2 = inputs.at(2).view();
    const reference::PlainSums sums = reference::plain_sums(problem_.a, problem_.b, maker.numerics, maker.device);
    reference_ = reference::dual_gemm_fast(problem_, a, b1, b2, region_);
    if (sums.is_short() && rule_ == Rule::contest) {
      rule_ = Rule::general;
    }
    if (sums.is_folded) {
      fold(a, b1, b2, sums.accumulation);
    } else if (rule_ == Rule::general || sums.is_short()) {
      plain_ = reference::plain_low_precision(problem_, a, b1, b2, region_, sums.accumulation);
      require_exact_sums(reference_);
    }
  }

  Finding judge(const std::vector<HostTensor>& outputs) const override {
    const Tensor c = outputs.at(0).view();
    const Verdict verdict = reference::judge(problem_, rule_, region_, reference_, plain_, c);
    Finding finding;
    finding.correct = verdict.passed;
    finding.worst_ratio = verdict.worst.ratio;
    const JudgedOutputs judged{reference::output_of(problem_), region_, reference_, c};
    if (!verdict.passed) {
      finding.fault = mistake_in({&judged, 1});
      finding.fault = finding.fault.empty() ? fault_of(verdict, problem_.m - 1, problem_.n - 1) : finding.fault;
    }
    finding.sentence = verdict.explain();
    finding.evidence = evidence_of(verdict, problem_.m * problem_.n);
    if (!exact_operands_.empty()) {
      finding.error_against_exact = distance(values_of(judged), exact_operands_);
    }
    return finding;
  }

 private:
  /// From the definition on the exact operands to that on the folded ones.
  void fold(const Tensor& a, const Tensor& b1, const Tensor& b2, reference::Accumulation accumulation) {
    DualGemmProblem of_folded = problem_;
    of_folded.a = of_folded.b = Format::fp32;
    const reference::Folded tokens = reference::fold_tokens(a);
    const reference::Folded gate = reference::fold_weights(b1);
    const reference::Folded up = reference::fold_weights(b2);
    const reference::Outputs of_exact = std::move(reference_);
    reference_ = reference::dual_gemm_fast(of_folded, tokens.view, gate.view, up.view, region_);
    plain_ = reference::plain_low_precision(of_folded, tokens.view, gate.view, up.view, region_, accumulation);
    exact_operands_ = of_exact.value;
    require_exact_sums(of_exact);
  }

  /// Exact outputs are asked for only where a plain computation has exact sums. Those of 14 bits are modelled
  /// pessimistically: where they are exact, the matrix unit's are.
  void require_exact_sums(const reference::Outputs& exact) {
    const bool loses_nothing = reference_.gate == exact.gate && reference_.up == exact.up &&
                               plain_.gate == exact.gate && plain_.up == exact.up;
    if (rule_ == Rule::exact && !loses_nothing) {
      rule_ = Rule::general;
    }
  }

  DualGemmProblem problem_;
  Rule rule_;
  Region region_;
  reference::Outputs reference_;
  reference::Outputs plain_;            ///< read by Rule::general alone
  std::vector<double> exact_operands_;  ///< what they would give, where folded ones are judged
};

}  // namespace

Rule dual_gemm_rule(const DualGemmProblem& problem, Distribution distribution) {
  if (distribution == Distribution::integers) {
    return Rule::exact;
  }
  const bool is_contest = distribution == Distribution::contest && problem.out == Format::fp16 &&
                          problem.activation.kind == ActivationKind::silu;
  return is_contest ? Rule::contest : Rule::general;
}

std::unique_ptr<Judge> make_dual_gemm_judge(const DualGemmProblem& problem, Distribution distribution,
                                            const std::vector<HostTensor>& inputs, const Maker& maker,
                                            std::uint64_t seed) {
  return std::make_unique<DualGemmJudge>(problem, distribution, inputs, maker, seed);
}

}  // namespace thresher::arena
