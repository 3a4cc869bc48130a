#pragma once
/// The definition of attention for selected rows: long sequences are checked by samples.
#include <vector>

#include "reference/attention.hpp"
#include "reference/attention_judgement.hpp"

namespace thresher::reference {

/// Results of `samples`, in their order: o is [samples, D].
struct AttentionRows {
  std::vector<AttentionSample> samples;
  std::vector<double> o;
  std::vector<double> lse;
};

/// Every row of the problem if that takes at most `max_products` multiplications. Otherwise a sample of each 64 queries
/// of every head of every sequence: as many random ones as fit (at least one), and the first and last query of each
/// sequence. `tensors` gives the lengths of sequences.
std::vector<AttentionSample> sample_queries(const AttentionProblem& problem, const AttentionTensors& tensors,
                                            double max_products, std::uint64_t seed);

/// As `attention`, bit for bit, for `samples` sorted by sequence and head; on all cores for `threads` 0.
AttentionRows attention_rows(const AttentionProblem& problem, const AttentionTensors& tensors,
                             std::vector<AttentionSample> samples, int threads = 0);

/// As `attention_plain_low_precision`, bit for bit.
AttentionRows attention_rows_plain_low_precision(const AttentionProblem& problem, const AttentionTensors& tensors,
                                                 std::vector<AttentionSample> samples, int threads = 0);

/// The result of `judge_rows`, with the position of the worst element.
struct [[nodiscard]] AttentionRowsJudgement {
  AttentionJudgement judgement;
  AttentionSample worst;
  std::int64_t judged = 0;  ///< elements of o and lse
  std::int64_t wrong = 0;
  bool one_tile = false;  ///< all wrong elements are in 64 queries of one head
};

/// `judge_attention` for the rows of `definition`; `plain` holds the same samples.
AttentionRowsJudgement judge_rows(const AttentionProblem& problem, const AttentionTensors& tensors,
                                  const AttentionRows& definition, const AttentionRows& plain);

/// Value of element `column` of the row in `tensors.o`.
double output_element(const AttentionTensors& tensors, const AttentionSample& sample, const AttentionProblem& problem,
                      std::int64_t column);

}  // namespace thresher::reference
