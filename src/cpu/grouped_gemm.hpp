#pragma once
/// Grouped products on this CPU. Each expert's rows are multiplied as in the dual GEMM, block by block of its weights,
/// which are never dequantized whole. Each thread takes one expert; all threads share an expert with more than its
/// share of the rows. A quantized output is computed from a float32 output in the workspace. Arguments are validated.
/// Results are exact and bitwise equal from run to run, as described in src/cpu/dual_gemm.hpp.
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

  /// Bytes that `run` needs in a workspace aligned to 64 bytes.
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
  /// Quantizes the rows of C that experts own from float32 `values`, which have C's shape.
  void quantize_output(const Tensor& values, const Tensor& c, const reference::OwnedRows& owned) const;
  /// Workspace of the products.
  [[nodiscard]] std::size_t product_bytes() const noexcept;
  /// Workspace of one thread for one expert.
  [[nodiscard]] std::size_t bytes_of_one() const noexcept;

  GroupedProblem problem_;
  int threads_;
  std::vector<std::unique_ptr<const PlannedRows>> planned_rows_;  ///< for ever more rows of one expert
};

}  // namespace thresher::cpu
