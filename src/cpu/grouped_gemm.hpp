#pragma once
/// Grouped products on this CPU: each expert's rows are multiplied as a dual GEMM's are, block by block of its weights,
/// which are never dequantised whole. Threads take an expert each; all of them together one that has more than its
/// share of the rows. QuantizedOutput outputs are made of outputs in float32, which are kept in the workspace.
/// Arguments arrive validated. Exact, and bitwise equal from run to run, as src/cpu/dual_gemm.hpp says of the dual
/// GEMM.
#include <cstddef>
#include <memory>
#include <vector>

#include "core/grouped_weights.hpp"
#include "reference/grouped_rows.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::cpu {

/// A planned grouped product. Safe to run from several threads, each with its own workspace.
class GroupedGemmKernel {
 public:
  /// `threads` 0 means all.
  GroupedGemmKernel(const GroupedProblem& problem, int threads);
  ~GroupedGemmKernel();

  /// Bytes that `run` needs at a workspace aligned to 64 bytes.
  [[nodiscard]] std::size_t workspace_bytes() const noexcept;
  /// Writes the rows of C that experts own.
  [[nodiscard]] GroupedStatus run(const WeightViews& weights, const GroupedTensors& tensors, void* workspace) const;

 private:
  class PlannedRows;

  [[nodiscard]] const PlannedRows& planned_for(std::int64_t rows) const;
  void run_expert(const WeightViews& weights, const GroupedTensors& tensors, const reference::OwnedRows& owned,
                  std::int64_t expert, void* workspace, int team) const;
  void multiply(const WeightViews& weights, const GroupedTensors& tensors, const reference::OwnedRows& owned,
                void* workspace) const;
  /// The rows of C that experts own, from `values` in float32, which are shaped as C is.
  void quantize_output(const Tensor& values, const Tensor& c, const reference::OwnedRows& owned) const;
  /// What products need.
  [[nodiscard]] std::size_t product_bytes() const noexcept;
  /// What one thread needs for an expert of its own.
  [[nodiscard]] std::size_t bytes_of_one() const noexcept;

  GroupedProblem problem_;
  int threads_;
  std::vector<std::unique_ptr<const PlannedRows>> planned_rows_;  ///< for ever more rows of one expert
};

}  // namespace thresher::cpu
