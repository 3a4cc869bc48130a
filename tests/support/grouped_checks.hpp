#pragma once
/// Groups for tests of grouped products, and whether C is as the definition says.
#include <cmath>
#include <string>
#include <vector>

#include "formats/elements.hpp"
#include "reference/grouped_gemm.hpp"
#include "support/grouped_case.hpp"

namespace thresher::test {

/// What is wrong with C, in words; empty when nothing is.
inline std::string wrong_rows(GroupedCase& host) {
  const GroupedProblem& problem = host.problem();
  const reference::GroupedOutputs wanted = reference::grouped_gemm(problem, host.weights(), host.tensors());
  const Tensor c = host.c().view();
  const double allowed = problem.out == Format::bf16 ? 0.02 : problem.out == Format::fp16 ? 0.006 : 0.004;
  for (std::size_t row = 0; row < wanted.owned.tokens.size(); ++row) {
    const auto at = static_cast<std::int64_t>(row);
    if (wanted.owned.tokens[row] < 0) {
      if (!host.is_untouched(at)) {
        return "row " + std::to_string(row) + ", which no expert owns, was written";
      }
      continue;
    }
    for (std::int64_t n = 0; n < problem.n; ++n) {
      const double want = wanted.values[row * static_cast<std::size_t>(problem.n) + static_cast<std::size_t>(n)];
      const double got = formats::element(c, at, n);
      if (std::isnan(want) ? !std::isnan(got) : !(std::abs(got - want) <= allowed * (1 + std::abs(want)))) {
        return "row " + std::to_string(row) + ", output " + std::to_string(n) + ": " + std::to_string(got) +
               ", expected " + std::to_string(want);
      }
    }
  }
  return host.c().gaps_intact() ? "" : "a gap between rows was written";
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
    form.row_ids.push_back(row % 7 == 3 ? -1 : static_cast<std::int32_t>(row * 5 % ids));
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
