#pragma once
/// What a problem of the grouped dual GEMM, of the grouped GEMM and of the GEMM is in the arena.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arena/grouped_gemm/routing.hpp"
#include "arena/operation/problem.hpp"
#include "thresher/gemm.hpp"

namespace thresher::arena {

/// A grouped product of a suite: what is computed, how many rows the experts get, and how the tensors are given.
struct GroupedTask {
  GroupedProblem problem;
  /// Rows of each expert. Which expert gets which count the inputs' seed says, so that no two calls need agree.
  std::vector<std::int64_t> counts;
  std::optional<RoutedTokens> routed{};  ///< where the counts are from; nothing: listed
  std::optional<GateUpOrder> order{};    ///< gate and up in one tensor
  Format bias_format = Format::bf16;     ///< where the problem has biases
  ScaleLayout scale_layout = ScaleLayout::row_major;
  std::int64_t margin = 0;   ///< rows of nobody before the first expert's and behind the last one's
  bool is_dense = false;     ///< a GEMM: one expert owns every row, and there are no offsets
  std::int64_t skipped = 0;  ///< gathered: of so many rows one has an id outside A; 0: none has
  bool operator==(const GroupedTask&) const = default;

  [[nodiscard]] std::int64_t owned_rows() const noexcept;
  [[nodiscard]] std::int64_t active_experts() const noexcept;
};

/// The task with the problem's rows and tokens as its counts and margin need them.
[[nodiscard]] GroupedTask completed(GroupedTask task);

[[nodiscard]] const Operation& grouped_dual_gemm_operation();
[[nodiscard]] const Operation& grouped_gemm_operation();
[[nodiscard]] const Operation& gemm_operation();

/// A GEMM, and what it is.
[[nodiscard]] GroupedTask dense_task(const GemmProblem& problem, ScaleLayout scale_layout = ScaleLayout::row_major);
[[nodiscard]] GemmProblem gemm_of(const GroupedTask& task);

/// Of the operation that it is of: the GEMM, or what its activation says.
[[nodiscard]] Problem problem_of(GroupedTask task);

/// "32x2048x7168 bf16*bf16->bf16 512 rows (512x8 of 256 uniform)": experts, N and K, formats and rows, followed by what
/// is not the default. "256x4096x7168 bf16*bf16->bf16" of a GEMM: M, N and K.
[[nodiscard]] std::string label_of(const GroupedTask& task);

}  // namespace thresher::arena
