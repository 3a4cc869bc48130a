#pragma once
/// The commonest mistakes in products with an activation, known by what they give; and what a verdict leaves as
/// evidence. For the dual GEMM and the grouped products alike.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arena/results/finding.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {

/// Some outputs that lie in one matrix `c`, and what the definition gives for them.
struct JudgedOutputs {
  reference::OutputMatrix of;
  const reference::Region& region;
  const reference::Outputs& reference;
  Tensor c;
};

/// The mistake that, but for rounding, gives all of them; empty when none does.
[[nodiscard]] std::string mistake_in(std::span<const JudgedOutputs> parts);

/// Says in words what is wrong, where no mistake explains it. `last_row` and `last_column` are those of C.
[[nodiscard]] std::string fault_of(const reference::Verdict& verdict, std::int64_t last_row, std::int64_t last_column);

/// `elements` are those of C.
[[nodiscard]] JudgeEvidence evidence_of(const reference::Verdict& verdict, std::int64_t elements);

/// The judged elements themselves, in the order of `reference`.
[[nodiscard]] std::vector<double> values_of(const JudgedOutputs& part);

}  // namespace thresher::arena
