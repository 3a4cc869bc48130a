#pragma once
/// Groups for tests of grouped products, and whether C is as the definition says.
#include <algorithm>
#include <string>
#include <vector>

#include "reference/grouped_judgement.hpp"
#include "support/grouped_case.hpp"

namespace thresher::test {

/// What is wrong with C, in words; empty when nothing is. `accumulation` is the maker's: the judge allows what it
/// loses.
inline std::string wrong_rows(GroupedCase& host, Numerics numerics = Numerics::exact,
                              reference::Accumulation accumulation = reference::Accumulation::float32) {
  const reference::GroupedCall call = reference::grouped_call(host.problem(), host.weights(), host.tensors());
  for (std::size_t row = 0; row < call.owned.tokens.size(); ++row) {
    if (call.owned.tokens[row] < 0 && !host.is_untouched(static_cast<std::int64_t>(row))) {
      return "row " + std::to_string(row) + ", which no expert owns, was written";
    }
  }
  if (!host.c().gaps_intact()) {
    return "a gap between rows was written";
  }
  const reference::Verdict verdict =
      reference::judge_grouped(call, reference::Rule::general, reference::whole(call), accumulation, numerics);
  return verdict.passed ? "" : verdict.explain();
}

/// Offsets, or counts, of ragged groups: full tiles, partial ones and empty groups.
inline std::vector<std::int32_t> ragged_groups(const GroupedProblem& problem) {
  const bool has_slots = problem.layout == RowLayout::slots;
  std::vector<std::int32_t> counts;
  std::int64_t left = problem.rows;
  for (std::int64_t e = 0; e < problem.experts; ++e) {
    const std::int64_t wanted = e % 4 == 1 ? 0 : e % 4 == 0 ? problem.rows / 2 + 3 : problem.rows / (e + 5) + 1;
    const std::int64_t count = std::min(wanted, has_slots ? problem.rows : left);
    counts.push_back(static_cast<std::int32_t>(count));
    left -= count;
  }
  if (has_slots) {
    return counts;
  }
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t count : counts) {
    offsets.push_back(offsets.back() + count);
  }
  return offsets;
}

/// Such groups; of gathered rows with ids that come again and ids of no token.
inline GroupedForm ragged_form(const GroupedProblem& problem) {
  GroupedForm form{.groups = ragged_groups(problem)};
  for (std::int64_t row = 0; row < problem.rows && problem.layout == RowLayout::gathered; ++row) {
    const std::int64_t ids = problem.tokens * problem.row_ids_divisor;
    form.row_ids.push_back(static_cast<std::int32_t>(row % 14 == 3 ? -1 : row % 14 == 10 ? ids : row * 5 % ids));
  }
  return form;
}

inline GroupedProblem with_layout(GroupedProblem problem, RowLayout layout) {
  problem.layout = layout;
  problem.tokens = layout == RowLayout::gathered ? problem.rows / 2 + 1 : 0;
  problem.row_ids_divisor = layout == RowLayout::gathered ? 2 : 1;
  return problem;
}

}  // namespace thresher::test
