#include "arena/gemm/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arena/gemm/comparison.hpp"
#include "arena/gemm/judged_call.hpp"
#include "arena/gemm/mistakes.hpp"

namespace thresher::arena {
namespace {

using reference::Accumulation;
using reference::GroupedCall;
using reference::GroupRegion;
using reference::Outputs;
using reference::Rule;
using reference::Verdict;

/// Every output where the definition is cheap enough, else some of every tile.
std::vector<GroupRegion> parts_of(const GroupedCall& call, std::uint64_t seed) {
  const GroupedProblem& p = call.problem;
  const auto rows =
      std::count_if(call.owned.tokens.begin(), call.owned.tokens.end(), [](std::int64_t token) { return token >= 0; });
  const double products = (is_gated(p.activation) ? 2.0 : 1.0) * static_cast<double>(rows) * static_cast<double>(p.n) *
                          static_cast<double>(p.k);
  if (products <= whole_output_products) {
    return reference::whole(call);
  }
  const auto per_tile =
      static_cast<std::int64_t>(std::sqrt(whole_output_products / products) * double{reference::tile_side});
  return reference::sample_every_tile(call, std::max<std::int64_t>(per_tile, 4), seed);
}

class ProductJudge final : public Judge {
 public:
  ProductJudge(const ProductTask& task, Distribution distribution, const std::vector<HostTensor>& inputs,
               const Maker& maker, std::uint64_t seed)
      : rule_(product_rule(task, distribution)), call_(judged_call(task, pointers_to(inputs))) {
    const reference::PlainSums sums = plain_sums(task, maker);
    if (sums.is_short() && !(task.is_dual_gemm() && rule_ == Rule::exact)) {
      rule_ = Rule::general;
    }
    const Numerics numerics = sums.is_folded ? Numerics::fast : Numerics::exact;
    for (GroupRegion& region : parts_of(call_, seed)) {
      Part part{std::move(region), {}, {}, {}};
      part.reference = grouped_outputs(call_, part.region, Accumulation::float64, numerics);
      if (rule_ == Rule::general || sums.is_short()) {
        part.plain = grouped_outputs(call_, part.region, sums.accumulation, numerics);
      }
      Outputs exact;
      if (sums.is_folded) {
        exact = grouped_outputs(call_, part.region, Accumulation::float64);
        part.exact = exact.value;
      }
      if (sums.is_short()) {
        require_exact_sums(part, sums.is_folded ? exact : part.reference);
      }
      parts_.push_back(std::move(part));
    }
    forget_operands(inputs);
  }
  ProductJudge(const ProductJudge&) = delete;

  Finding judge(const std::vector<HostTensor>& outputs) const override {
    GroupedCall call = call_;
    const HostTensor* const scales = outputs.size() > 1 ? &outputs[1] : nullptr;
    call.tensors.c = grouped_output(call.problem, [&](std::string_view name) {
      return name == "c"                               ? outputs.at(0).view()
             : name == "c_scales" && scales != nullptr ? scales->view()
             : name == "c_scale" && !given_scales_.empty()
                 ? Tensor::contiguous(const_cast<float*>(given_scales_.data()), Format::fp32,
                                      {std::ssize(given_scales_)})
                 : Tensor{};
    });
    call.tensors.row_weights.data =
        const_cast<std::uint8_t*>(row_weights_.data());  // a Tensor has one pointer for both
    Verdict verdict;
    verdict.rule = rule_;
    std::vector<JudgedOutputs> judged;
    for (const Part& part : parts_) {
      const std::int64_t expert = part.region.expert;
      judged.push_back({output_of(call, expert), part.region.region, part.reference, group_output(call, expert)});
      verdict.include(
          reference::judge(judged.back().of, rule_, judged.back().region, part.reference, part.plain, judged.back().c),
          call.owned.groups[static_cast<std::size_t>(expert)].first);
    }
    return finding(verdict, judged);
  }

  [[nodiscard]] std::vector<bool> untouched_rows(std::size_t /*output*/) const override {
    std::vector<bool> untouched;
    std::transform(call_.owned.tokens.begin(), call_.owned.tokens.end(), std::back_inserter(untouched),
                   [](std::int64_t token) { return token < 0; });
    return untouched;
  }

 private:
  struct Part {
    GroupRegion region;
    Outputs reference;
    Outputs plain;              ///< read by Rule::general alone
    std::vector<double> exact;  ///< outputs of the exact operands, where quantized ones are judged
  };

  /// Exact outputs are asked for only where a plain computation has exact sums. Those of 14 bits are modelled
  /// pessimistically: where they are exact, the tensor cores' are.
  void require_exact_sums(const Part& part, const Outputs& exact) {
    const bool loses_nothing = part.reference.gate == exact.gate && part.reference.up == exact.up &&
                               part.plain.gate == exact.gate && part.plain.up == exact.up;
    if (!loses_nothing) {
      rule_ = Rule::general;
    }
  }

  /// Keeps the row weights and the static scales alone.
  void forget_operands(const std::vector<HostTensor>& inputs) {
    for (const HostTensor& input : inputs) {
      if (input.name == "row_weights") {
        row_weights_ = input.values;
      } else if (input.name == "c_scale") {
        given_scales_.resize(input.values.size() / sizeof(float));
        std::memcpy(given_scales_.data(), input.values.data(), input.values.size());
      }
    }
    call_.weights = {};
    call_.tensors.a = call_.tensors.offsets = call_.tensors.counts = call_.tensors.row_ids = {};
  }

  [[nodiscard]] Finding finding(const Verdict& verdict, const std::vector<JudgedOutputs>& judged) const {
    const auto rows = static_cast<std::int64_t>(call_.owned.tokens.size());
    Finding found;
    found.correct = verdict.passed;
    found.worst_ratio = verdict.worst.ratio;
    if (!verdict.passed) {
      found.fault = mistake_in(judged);
      found.fault = found.fault.empty() ? fault_of(verdict, rows - 1, call_.problem.n - 1) : found.fault;
    }
    found.sentence = verdict.explain();
    found.evidence = evidence_of(verdict, rows * call_.problem.n);
    std::vector<double> values;
    std::vector<double> exact;
    for (std::size_t i = 0; i < parts_.size() && !parts_[i].exact.empty(); ++i) {
      const std::vector<double> of_part = values_of(judged[i]);
      values.insert(values.end(), of_part.begin(), of_part.end());
      exact.insert(exact.end(), parts_[i].exact.begin(), parts_[i].exact.end());
    }
    if (!exact.empty()) {
      found.error_against_exact = distance(values, exact);
    }
    return found;
  }

  Rule rule_;
  GroupedCall call_;  ///< without what outputs are made of
  std::vector<std::uint8_t> row_weights_;
  std::vector<float> given_scales_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Judge> make_product_judge(const ProductTask& task, Distribution distribution,
                                          const std::vector<HostTensor>& inputs, const Maker& maker,
                                          std::uint64_t seed) {
  return std::make_unique<ProductJudge>(task, distribution, inputs, maker, seed);
}

}  // namespace thresher::arena
