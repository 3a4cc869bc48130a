#include "arena/attention/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arena/attention/inputs.hpp"
#include "reference/attention_rows.hpp"

namespace thresher::arena {
namespace {

using reference::AttentionRows;

/// Outputs whose definition costs more multiplications than this are judged on random rows of every 64 queries.
constexpr double whole_output_products = 0.8e9;

/// A mistake: makes problem and tensors those that are right if it was made, or says that they are right anyway.
struct Hypothesis {
  const char* fault;
  bool (*changes)(AttentionProblem& problem, AttentionTensors& tensors);
};

constexpr Hypothesis hypotheses[] = {
    {"the causal mask left out",
     [](AttentionProblem& p, AttentionTensors&) {
       const bool differs = p.causal;
       p.causal = false;
       return differs;
     }},
    {"the causal mask aligned top-left",
     [](AttentionProblem& p, AttentionTensors&) {
       const bool differs = p.causal && !p.variable_length && p.window_right < 0 && p.queries > p.keys;
       p.causal = false;
       p.window_right = p.queries - p.keys;
       return differs;
     }},
    {"the window left out",
     [](AttentionProblem& p, AttentionTensors&) {
       const bool differs = p.window_left >= 0 || p.window_right >= 0;
       p.window_left = p.window_right = -1;
       return differs;
     }},
    {"the softcap left out",
     [](AttentionProblem& p, AttentionTensors&) {
       const bool differs = p.softcap > 0;
       p.softcap = 0;
       return differs;
     }},
    {"the scale left out",
     [](AttentionProblem& p, AttentionTensors&) {
       const bool differs = effective_scale(p) != 1;
       p.scale = 1;
       return differs;
     }},
    {"the sinks left out",
     [](AttentionProblem& p, AttentionTensors&) {
       const bool differs = p.sinks;
       p.sinks = false;
       return differs;
     }},
    {"the descale of the queries left out",
     [](AttentionProblem&, AttentionTensors& tensors) {
       const bool differs = tensors.q_descale.data != nullptr;
       tensors.q_descale = {};
       return differs;
     }},
    {"the descale of the keys left out",
     [](AttentionProblem&, AttentionTensors& tensors) {
       const bool differs = tensors.k_descale.data != nullptr;
       tensors.k_descale = {};
       return differs;
     }},
    {"the descale of the values left out",
     [](AttentionProblem&, AttentionTensors& tensors) {
       const bool differs = tensors.v_descale.data != nullptr;
       tensors.v_descale = {};
       return differs;
     }},
};

class AttentionJudge final : public Judge {
 public:
  AttentionJudge(const AttentionTask& task, std::vector<HostTensor> inputs, std::uint64_t seed)
      : task_(task), inputs_(std::move(inputs)) {
    const AttentionTensors tensors = tensors_with({});
    const auto samples = reference::sample_queries(task_.problem, tensors, whole_output_products, seed);
    definition_ = reference::attention_rows(task_.problem, tensors, samples);
    plain_ = reference::attention_rows_plain_low_precision(task_.problem, tensors, samples);
  }

  Finding judge(const std::vector<HostTensor>& outputs) const override {
    const AttentionTensors tensors = tensors_with(outputs);
    const auto verdict = reference::judge_rows(task_.problem, tensors, definition_, plain_);
    Finding finding;
    finding.correct = verdict.judgement.passed;
    finding.worst_ratio = verdict.judgement.worst_excess;
    if (!finding.correct) {
      finding.fault = name_fault(verdict, tensors);
    }
    finding.sentence =
        verdict.judgement.evidence.empty() ? "every element is the definition's" : verdict.judgement.evidence;
    finding.evidence = evidence(verdict);
    return finding;
  }

 private:
  AttentionTensors tensors_with(const std::vector<HostTensor>& outputs) const {
    return attention_tensors(task_, find_in(inputs_, outputs));
  }

  std::string name_fault(const reference::AttentionRowsJudgement& verdict, const AttentionTensors& tensors) const {
    for (const Hypothesis& hypothesis : hypotheses) {
      AttentionProblem changed = task_.problem;
      AttentionTensors with = tensors;
      if (hypothesis.changes(changed, with) && explains(changed, with)) {
        return hypothesis.fault;
      }
    }
    if (verdict.wrong == 1) {
      const bool is_last = verdict.worst.query == task_.problem.queries - 1;
      return is_last ? "one element off at the ragged edge" : "one element off";
    }
    return verdict.one_tile ? one_tile_wrong : wrong_values;
  }

  /// Whether the output is, but for rounding, what the mistake would give.
  bool explains(const AttentionProblem& changed, const AttentionTensors& tensors) const {
    const AttentionRows mistake = reference::attention_rows(changed, tensors, definition_.samples);
    double from_mistake = 0;
    double from_definition = 0;
    const auto width = static_cast<std::size_t>(effective_value_dim(changed));
    for (std::size_t i = 0; i < mistake.o.size(); ++i) {
      const double value =
          reference::output_element(tensors, mistake.samples[i / width], changed, static_cast<std::int64_t>(i % width));
      if (std::isfinite(value) && std::isfinite(mistake.o[i]) && std::isfinite(definition_.o[i])) {
        from_mistake += std::pow(value - mistake.o[i], 2);
        from_definition += std::pow(value - definition_.o[i], 2);
      }
    }
    return from_mistake < 1e-2 * from_definition;
  }

  JudgeEvidence evidence(const reference::AttentionRowsJudgement& verdict) const {
    const AttentionProblem& p = task_.problem;
    const std::int64_t rows = p.heads * p.queries * (p.variable_length ? 1 : p.batch);
    const auto count = [](auto value) { return static_cast<std::int64_t>(value); };
    return {"twice the plain computation's error and one ulp",
            {{"judged", count(verdict.judged)},
             {"of", rows * (effective_value_dim(p) + (task_.lse ? 1 : 0))},
             {"wrong", count(verdict.wrong)},
             {"max_error", verdict.judgement.max_error},
             {"plain_error", verdict.judgement.plain_error}},
            {{"worst_element",
              {{"sequence", count(verdict.worst.batch)},
               {"head", count(verdict.worst.head)},
               {"query", count(verdict.worst.query)},
               {"error_over_bound", static_cast<double>(verdict.judgement.worst_excess)}}}}};
  }

  AttentionTask task_;
  std::vector<HostTensor> inputs_;
  AttentionRows definition_;
  AttentionRows plain_;
};

}  // namespace

std::unique_ptr<Judge> make_attention_judge(const AttentionTask& task, std::vector<HostTensor> inputs,
                                            std::uint64_t seed) {
  return std::make_unique<AttentionJudge>(task, std::move(inputs), seed);
}

}  // namespace thresher::arena
