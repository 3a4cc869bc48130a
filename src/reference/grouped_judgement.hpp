#pragma once
/// Grouped products of any size: a faster definition, a plain computation in low precision, and a check of outputs.
/// Each expert's rows are checked as the output of a separate product.
#include <cstdint>
#include <vector>

#include "core/grouped_weights.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/grouped_rows.hpp"
#include "reference/region.hpp"
#include "reference/tolerance.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::reference {

/// One valid call in CPU memory.
struct GroupedCall {
  GroupedProblem problem;
  WeightViews weights;
  GroupedTensors tensors;
  OwnedRows owned;
};
[[nodiscard]] GroupedCall grouped_call(const GroupedProblem& problem, const GroupedWeights& weights,
                                       const GroupedTensors& tensors);

/// Outputs of one expert: rows are counted from its first; skipped rows are not included.
struct GroupRegion {
  std::int64_t expert = 0;
  Region region;
};

/// Every output that is written.
[[nodiscard]] std::vector<GroupRegion> whole(const GroupedCall& call);
/// At most `per_tile` rows and columns of every tile of every expert, and all elements that share a scale with one of
/// them.
[[nodiscard]] std::vector<GroupRegion> sample_every_tile(const GroupedCall& call, std::int64_t per_tile,
                                                         std::uint64_t seed);

/// With float64 the definition, `value` unrounded; otherwise the plain computation, `value` rounded. Numerics `fast`
/// uses the quantized operands (reference/fold.hpp).
[[nodiscard]] Outputs grouped_outputs(const GroupedCall& call, const GroupRegion& part, Accumulation accumulation,
                                      Numerics numerics = Numerics::exact, int threads = 0);

/// The matrix that holds one expert's rows of C, the range of these rows, and their format.
[[nodiscard]] Tensor group_output(const GroupedCall& call, std::int64_t expert);
[[nodiscard]] OutputMatrix output_of(const GroupedCall& call, std::int64_t expert);

/// Checks `call.tensors.c` over the parts; rows of the verdict are those of C, one slot behind the other.
Verdict judge_grouped(const GroupedCall& call, Rule rule, const std::vector<GroupRegion>& parts,
                      Accumulation accumulation = Accumulation::float32, Numerics numerics = Numerics::exact,
                      int threads = 0);

}  // namespace thresher::reference
