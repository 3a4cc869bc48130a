#pragma once
/// THE definition of attention, in float64; all results are compared with it.
#include <cstdint>
#include <vector>

#include "thresher/attention.hpp"

namespace thresher::reference {

/// Dense results for any strides of the tensors: o is [B,H,Sq,D] or [T,H,D], lse [B,H,Sq] or [H,T]. Rows that no
/// sequence covers (variable length) keep 0 and −Inf. D is the value dimension.
struct AttentionResult {
  std::vector<double> o;
  std::vector<double> lse;
};

/// The definition, one query at a time, in its plain order: logits, maximum, exponentials, sum, average of the values.
/// It does not round to the output format. It reads all of `tensors` except o and lse, which must be on the CPU.
///
/// A product q·k of stored values that is NaN or infinite in float32 is so here, because every implementation
/// accumulates in float32.
AttentionResult attention(const AttentionProblem& problem, const AttentionTensors& tensors);

/// The same definition on all cores (`threads` 0) and in blocks, for long sequences. It must equal `attention`.
AttentionResult attention_threaded(const AttentionProblem& problem, const AttentionTensors& tensors, int threads = 0);

/// A plain computation in the inputs' precision: logits, softmax and products accumulated in float32, the normalised
/// probabilities rounded to the format, one rounding of the output. Its error sets the tolerance.
AttentionResult attention_plain_low_precision(const AttentionProblem& problem, const AttentionTensors& tensors,
                                              int threads = 0);

/// A part of a batch: one head of one sequence.
struct AttentionSample {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;
};

/// One row of the definition, o[D] and its lse, to sample problems that are too large to compute whole.
struct AttentionRow {
  std::vector<double> o;
  double lse = 0.0;
};
AttentionRow attention_row(const AttentionProblem& problem, const AttentionTensors& tensors,
                           const AttentionSample& sample);

}  // namespace thresher::reference
