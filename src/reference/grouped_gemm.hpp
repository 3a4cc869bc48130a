#pragma once
/// THE definition of the grouped dual GEMM and of the grouped GEMM, in float64; all results are compared with it.
#include <vector>

#include "reference/grouped_rows.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::reference {

struct GroupedOutputs {
  /// Row-major [rows of C, n], not rounded to the output format; 0 in rows that are not written.
  std::vector<double> values;
  OwnedRows owned;
};

/// One element at a time, K in ascending order. Throws Error(invalid_argument) naming the operand unless all of them
/// are on the CPU and as the problem states. The values of `tensors.c` are not read.
GroupedOutputs grouped_gemm(const GroupedProblem& problem, const GroupedWeights& weights,
                            const GroupedTensors& tensors);

}  // namespace thresher::reference
