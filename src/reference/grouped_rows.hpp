#pragma once
/// Which rows of C belong to which expert, and which row of A each takes: what GroupedProblem says, in integers.
#include <cstdint>
#include <vector>

#include "thresher/grouped_gemm.hpp"

namespace thresher::reference {

/// Rows of C one after another; with slots row i of slot e is row e · capacity + i.
struct GroupRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  [[nodiscard]] std::int64_t end() const noexcept { return first + count; }
};

struct OwnedRows {
  std::vector<GroupRows> groups;  ///< of each expert; none overlap
  /// Of each row of C the row of A that it takes (with slots counted as those of C); −1 for one that is not written.
  std::vector<std::int64_t> tokens;
  GroupedStatus status;
};

/// Of tensors in the CPU's memory, shaped as the problem says. Without offsets one expert owns every row.
[[nodiscard]] OwnedRows owned_rows(const GroupedProblem& problem, const GroupedTensors& tensors);

}  // namespace thresher::reference
