#include "reference/attention_judgement.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reference/attention_rows.hpp"
#include "reference/attention_view.hpp"
#include "reference/output_format.hpp"

namespace thresher::reference {
namespace {

double largest_finite_error(const std::vector<double>& computed, const std::vector<double>& definition) {
  double largest = 0.0;
  for (std::size_t i = 0; i < definition.size(); ++i) {
    if (std::isfinite(definition[i]) && std::isfinite(computed[i])) {
      largest = std::max(largest, std::abs(computed[i] - definition[i]));
    }
  }
  return largest;
}

/// Error over allowed error; infinite where a non-finite value differs from the definition.
double excess(double computed, double definition, double allowed) {
  if (std::isnan(definition)) {
    return std::isnan(computed) ? 0.0 : HUGE_VAL;
  }
  if (std::isinf(definition) || !std::isfinite(computed)) {
    return computed == definition ? 0.0 : HUGE_VAL;
  }
  const double error = std::abs(computed - definition);
  return error == 0.0 ? 0.0 : error / allowed;
}

/// Keeps the worst element.
class Judge {
 public:
  explicit Judge(AttentionJudgement& judgement) : judgement_(judgement) {}

  void element(const char* what, const AttentionSample& at, std::int64_t column, double computed, double definition,
               double allowed) {
    const double ratio = excess(computed, definition, allowed);
    if (!(ratio > judgement_.worst_excess)) {
      return;
    }
    judgement_.worst_excess = ratio;
    judgement_.passed = ratio <= 1.0;
    judgement_.evidence = fmt::format(
        "{} of sequence {}, head {}, query {}, column {} is {}, the definition gives {}, allowed is ±{:.3g}", what,
        at.batch, at.head, at.query, column, computed, definition, allowed);
  }

 private:
  AttentionJudgement& judgement_;
};

}  // namespace

AttentionJudgement judge_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                                   const AttentionResult& definition, const AttentionResult& plain) {
  AttentionJudgement judgement;
  judgement.plain_error = largest_finite_error(plain.o, definition.o);
  const double plain_lse_error = largest_finite_error(plain.lse, definition.lse);
  const std::int64_t width = effective_value_dim(problem);
  Judge judge(judgement);
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    const Sequence seq = sequence(problem, tensors, batch);
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      const HeadView view = head_view(tensors.o, batch, head, seq.first_query);
      for (std::int64_t query = 0; query < seq.queries; ++query) {
        const DensePosition at = dense_position(problem, seq, batch, head, query);
        for (std::int64_t column = 0; column < width; ++column) {
          const double expected = definition.o[static_cast<std::size_t>(at.o * width + column)];
          const double computed =
              static_cast<double>(stored(tensors.o, view.offset + query * view.row_stride + column));
          if (std::isfinite(computed) && std::isfinite(expected)) {
            judgement.max_error = std::max(judgement.max_error, std::abs(computed - expected));
          }
          judge.element("o", {batch, head, query}, column, computed, expected,
                        2.0 * judgement.plain_error + ulp(problem.format, expected));
        }
        if (tensors.lse.data != nullptr) {
          const double expected = definition.lse[static_cast<std::size_t>(at.lse)];
          const std::int64_t offset = lse_offset(tensors.lse, batch, head, seq.first_query) + query;
          judge.element("lse", {batch, head, query}, 0,
                        static_cast<double>(static_cast<const float*>(tensors.lse.data)[offset]), expected,
                        2.0 * plain_lse_error + std::ldexp(std::max(1.0, std::abs(expected)), -20));
        }
      }
    }
  }
  return judgement;
}

double output_element(const AttentionTensors& tensors, const AttentionSample& sample, const AttentionProblem& problem,
                      std::int64_t column) {
  const Sequence seq = sequence(problem, tensors, sample.batch);
  const HeadView view = head_view(tensors.o, sample.batch, sample.head, seq.first_query);
  return static_cast<double>(stored(tensors.o, view.offset + sample.query * view.row_stride + column));
}

AttentionRowsJudgement judge_rows(const AttentionProblem& problem, const AttentionTensors& tensors,
                                  const AttentionRows& definition, const AttentionRows& plain) {
  AttentionRowsJudgement result;
  result.judgement.plain_error = largest_finite_error(plain.o, definition.o);
  const double plain_lse_error = largest_finite_error(plain.lse, definition.lse);
  const auto width = static_cast<std::size_t>(effective_value_dim(problem));
  const AttentionSample* wrong_before = nullptr;
  Judge judge(result.judgement);
  const auto element = [&](const char* what, const AttentionSample& at, std::size_t column, double computed,
                           double expected, double allowed) {
    const double before = result.judgement.worst_excess;
    judge.element(what, at, static_cast<std::int64_t>(column), computed, expected, allowed);
    result.worst = result.judgement.worst_excess > before ? at : result.worst;
    ++result.judged;
    if (excess(computed, expected, allowed) > 1.0) {
      const bool same_tile =
          wrong_before == nullptr || (result.one_tile && wrong_before->batch == at.batch &&
                                      wrong_before->head == at.head && wrong_before->query / 64 == at.query / 64);
      result.one_tile = same_tile;
      wrong_before = &at;
      ++result.wrong;
    }
  };
  for (std::size_t row = 0; row < definition.samples.size(); ++row) {
    const AttentionSample& at = definition.samples[row];
    for (std::size_t column = 0; column < width; ++column) {
      const double expected = definition.o[row * width + column];
      const double computed = output_element(tensors, at, problem, static_cast<std::int64_t>(column));
      if (std::isfinite(computed) && std::isfinite(expected)) {
        result.judgement.max_error = std::max(result.judgement.max_error, std::abs(computed - expected));
      }
      element("o", at, column, computed, expected, 2.0 * result.judgement.plain_error + ulp(problem.format, expected));
    }
    if (tensors.lse.data != nullptr) {
      const double expected = definition.lse[row];
      const Sequence seq = sequence(problem, tensors, at.batch);
      const std::int64_t offset = lse_offset(tensors.lse, at.batch, at.head, seq.first_query) + at.query;
      element("lse", at, 0, static_cast<double>(static_cast<const float*>(tensors.lse.data)[offset]), expected,
              2.0 * plain_lse_error + std::ldexp(std::max(1.0, std::abs(expected)), -20));
    }
  }
  return result;
}

AttentionJudgement judge_attention(const AttentionProblem& problem, const AttentionTensors& tensors) {
  return judge_attention(problem, tensors, attention_threaded(problem, tensors),
                         attention_plain_low_precision(problem, tensors));
}

}  // namespace thresher::reference
