#pragma once
/// The rows of C of each expert, and the row of A that each takes: GroupedProblem's rules, in integers.
#include <cstdint>
#include <vector>

#include "thresher/grouped_gemm.hpp"

namespace thresher::reference {

/// Consecutive rows of C; with slots row i of slot e is row e · capacity + i.
struct GroupRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  [[nodiscard]] std::int64_t end() const noexcept { return first + count; }
};

struct OwnedRows {
  std::vector<GroupRows> groups;  ///< of each expert; they do not overlap
  /// For each row of C its row of A (with slots numbered as those of C); −1 for a row that is not written.
  std::vector<std::int64_t> tokens;
  GroupedStatus status;
};

/// For tensors in CPU memory, shaped as the problem says. Without offsets one expert owns every row.
[[nodiscard]] OwnedRows owned_rows(const GroupedProblem& problem, const GroupedTensors& tensors);

}  // namespace thresher::reference
