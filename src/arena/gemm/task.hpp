#pragma once
/// A problem of the products in the arena: of the dual GEMM, the GEMM, the grouped dual GEMM and the grouped GEMM.
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arena/gemm/routing.hpp"
#include "arena/operation/problem.hpp"
#include "strategies/gemm/problem.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/gemm.hpp"

namespace thresher::arena {

/// A product of a suite: its operation, how many rows the experts get, and how the tensors are given.
struct ProductTask {
  GroupedProblem problem;
  /// Rows of each expert. Which expert gets which count the inputs' seed says, so that no two calls need agree.
  std::vector<std::int64_t> counts;
  std::optional<RoutedTokens> routed{};  ///< where the counts are from; nothing: listed
  std::optional<GateUpOrder> order{};    ///< gate and up in one tensor
  Format bias_format = Format::bf16;     ///< where the problem has biases
  ScaleLayout scale_layout = ScaleLayout::row_major;
  std::int64_t margin = 0;   ///< unowned rows before the first expert's and behind the last one's
  bool is_dense = false;     ///< a GEMM or a dual GEMM: one expert owns every row, and there are no offsets
  std::int64_t skipped = 0;  ///< gathered: of so many rows one has an id outside A; 0: none has
  bool operator==(const ProductTask&) const = default;

  [[nodiscard]] static auto members(auto& task) {
    return std::tie(task.problem, task.counts, task.routed, task.order, task.bias_format, task.scale_layout,
                    task.margin, task.is_dense, task.skipped);
  }
  [[nodiscard]] bool is_dual_gemm() const noexcept { return is_dense && is_gated(problem.activation); }
  [[nodiscard]] std::int64_t owned_rows() const noexcept;
  [[nodiscard]] std::int64_t active_experts() const noexcept;
};

/// The task with the problem's rows and tokens as its counts and margin need them.
[[nodiscard]] ProductTask completed(ProductTask task);

[[nodiscard]] const Operation& dual_gemm_operation();
[[nodiscard]] const Operation& grouped_dual_gemm_operation();
[[nodiscard]] const Operation& grouped_gemm_operation();
[[nodiscard]] const Operation& gemm_operation();

/// Dense tasks, and the problems that they are.
[[nodiscard]] ProductTask dense_task(const GemmProblem& problem, ScaleLayout scale_layout = ScaleLayout::row_major);
[[nodiscard]] ProductTask dense_task(const DualGemmProblem& problem, ScaleLayout scale_layout = ScaleLayout::row_major);
[[nodiscard]] GemmProblem gemm_of(const ProductTask& task);
/// As strategies plan it.
[[nodiscard]] strategies::gemm::ProductProblem product_problem(const ProductTask& task);
[[nodiscard]] DualGemmProblem dual_gemm_of(const ProductTask& task);
/// Throws Error(internal) for a problem of another operation.
[[nodiscard]] DualGemmProblem dual_gemm(const Problem& problem);

/// The task's operation follows from its activation and from whether it is dense.
[[nodiscard]] Problem problem_of(ProductTask task);
[[nodiscard]] Problem problem_of(const DualGemmProblem& problem);

/// "32x2048x7168 bf16*bf16->bf16 512 rows (512x8 of 256 uniform)": experts, N and K, formats and rows, followed by what
/// is not the default. "256x4096x7168 bf16*bf16->bf16" of a dense one: M, N and K.
[[nodiscard]] std::string label_of(const ProductTask& task);
/// Its part of a label: empty for silu.
[[nodiscard]] std::string activation_text(const Activation& activation);

}  // namespace thresher::arena
