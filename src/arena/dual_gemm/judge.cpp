#include "arena/dual_gemm/judge.hpp"

#include <algorithm>
#include <cmath>

#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/fold.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {
namespace {

using reference::Accumulation;
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
  return reference::sample_every_tile(problem, std::max<std::int64_t>(per_tile, 4), seed);
}

/// A mistake and what an output would be if it had been made.
struct Hypothesis {
  const char* fault;
  double (*output)(double gate, double up, const Activation& activation);
};

constexpr Hypothesis hypotheses[] = {
    {"gate and up swapped",
     [](double gate, double up, const Activation& activation) {
       return reference::output_element(up, gate, activation);
     }},
    {"A*B1 alone, without activation and up", [](double gate, double, const Activation&) { return gate; }},
    {"A*B2 alone, without gate", [](double, double up, const Activation&) { return up; }},
    {"activation of the gate alone, without up",
     [](double gate, double, const Activation& activation) { return reference::output_element(gate, 1, activation); }},
    {"activation left out", [](double gate, double up, const Activation&) { return gate * up; }},
};

class DualGemmJudge final : public Judge {
 public:
  DualGemmJudge(const DualGemmProblem& problem, Distribution distribution, const std::vector<HostTensor>& inputs,
                const Maker& maker, std::uint64_t seed)
      : problem_(problem), rule_(dual_gemm_rule(problem, distribution)), region_(region_for(problem, seed)) {
    const Tensor a = inputs.at(0).view();
    const Tensor b1 = inputs.at(1).view();
    const Tensor b2 = inputs.at(2).view();
    reference_ = reference::dual_gemm_fast(problem_, a, b1, b2, region_);
    if (maker.numerics == Numerics::fast && format_traits(problem_.b).has_scales()) {
      fold(a, b1, b2);
    } else if (rule_ == Rule::general) {
      const Accumulation accumulation =
          maker.device == DeviceKind::cuda ? Accumulation::float32_truncated : Accumulation::float32;
      plain_ = reference::plain_low_precision(problem_, a, b1, b2, region_, accumulation);
    }
  }

  Finding judge(const std::vector<HostTensor>& outputs) const override {
    const Tensor c = outputs.at(0).view();
    const Verdict verdict = reference::judge(problem_, rule_, region_, reference_, plain_, c);
    Finding finding;
    finding.correct = verdict.passed;
    finding.worst_ratio = verdict.worst.ratio;
    if (!verdict.passed) {
      finding.fault = name_fault(verdict, c);
    }
    finding.sentence = verdict.explain();
    finding.evidence = evidence(verdict);
    if (!exact_operands_.empty()) {
      finding.error_against_exact = error_against_exact_operands(c);
    }
    return finding;
  }

 private:
  /// From the definition on the exact operands to that on the folded ones.
  void fold(const Tensor& a, const Tensor& b1, const Tensor& b2) {
    DualGemmProblem of_folded = problem_;
    of_folded.a = of_folded.b = Format::fp32;
    const reference::Folded tokens = reference::fold_tokens(a);
    const reference::Folded gate = reference::fold_weights(b1);
    const reference::Folded up = reference::fold_weights(b2);
    const reference::Outputs of_exact = std::move(reference_);
    reference_ = reference::dual_gemm_fast(of_folded, tokens.view, gate.view, up.view, region_);
    plain_ = reference::plain_low_precision(of_folded, tokens.view, gate.view, up.view, region_,
                                            Accumulation::float14_truncated);
    exact_operands_ = of_exact.value;
    // The sums of 14 bits are modelled pessimistically: where they are exact, the matrix unit's are.
    const bool loses_nothing = reference_.gate == of_exact.gate && reference_.up == of_exact.up &&
                               plain_.gate == of_exact.gate && plain_.up == of_exact.up;
    rule_ = rule_ == Rule::exact && loses_nothing ? Rule::exact : Rule::general;
  }

  /// The error over the judged elements, as a share of their norm; elements that are NaN or infinite are left out.
  double error_against_exact_operands(const Tensor& c) const {
    double difference = 0;
    double norm = 0;
    std::size_t i = 0;
    for (const std::int64_t row : region_.rows) {
      for (const std::int64_t column : region_.columns) {
        const double value = formats::element(c, row, column);
        const double exact = exact_operands_[i++];
        if (std::isfinite(value) && std::isfinite(exact)) {
          difference += std::pow(value - exact, 2);
          norm += std::pow(exact, 2);
        }
      }
    }
    return norm > 0 ? std::sqrt(difference / norm) : 0;
  }

  std::string name_fault(const Verdict& verdict, const Tensor& c) const {
    for (const Hypothesis& hypothesis : hypotheses) {
      if (explains(hypothesis, c)) {
        return hypothesis.fault;
      }
    }
    if (verdict.wrong == 1) {
      const bool last_row = verdict.worst.row == problem_.m - 1;
      const bool last_column = verdict.worst.column == problem_.n - 1;
      return last_row || last_column ? "one element off at the ragged edge" : "one element off";
    }
    const bool is_one_tile =
        verdict.wrong == verdict.worst_tile.wrong && verdict.worst_tile.elements < verdict.elements;
    return is_one_tile ? one_tile_wrong : wrong_values;
  }

  /// Whether the output is, but for rounding, what the mistake would give. Where mistake and definition agree nothing
  /// is learned, so the output must be nearer to the mistake by far.
  bool explains(const Hypothesis& hypothesis, const Tensor& c) const {
    double from_mistake = 0;
    double from_reference = 0;
    std::size_t i = 0;
    for (const std::int64_t row : region_.rows) {
      for (const std::int64_t column : region_.columns) {
        const double value = formats::element(c, row, column);
        const double mistake = hypothesis.output(reference_.gate[i], reference_.up[i], problem_.activation);
        if (std::isfinite(value) && std::isfinite(mistake) && std::isfinite(reference_.value[i])) {
          from_mistake += std::pow(value - mistake, 2);
          from_reference += std::pow(value - reference_.value[i], 2);
        }
        ++i;
      }
    }
    return from_mistake < 1e-3 * from_reference;
  }

  JudgeEvidence evidence(const Verdict& verdict) const {
    const auto count = [](auto value) { return static_cast<std::int64_t>(value); };
    return {std::string(reference::name(verdict.rule)),
            {{"judged", count(verdict.elements)}, {"of", problem_.m * problem_.n}, {"wrong", count(verdict.wrong)}},
            {{"worst_element",
              {{"row", verdict.worst.row},
               {"column", verdict.worst.column},
               {"value", verdict.worst.value},
               {"reference", verdict.worst.reference},
               {"bound", verdict.worst.bound},
               {"error_over_bound", verdict.worst.ratio}}},
             {"worst_tile",
              {{"row", verdict.worst_tile.row},
               {"column", verdict.worst_tile.column},
               {"wrong", count(verdict.worst_tile.wrong)},
               {"judged", count(verdict.worst_tile.elements)},
               {"relative_error", verdict.worst_tile.relative_error}}}}};
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
