#pragma once
/// The plain matrix product C = A·Bᵀ, for instance a down projection. Plan once and run many times.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thresher/grouped_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher {

/// C[m,n] from A[m,k] and B[n,k], with products in float32 (float64 in the reference): c = (A·Bᵀ)·scales + bias, and
/// the activation of it if there is one, rounded once to `out`.
struct GemmProblem {
  std::int64_t m = 0;  ///< the maximum number of rows of a call
  std::int64_t n = 0;
  std::int64_t k = 0;
  Format a = Format::fp16;                 ///< fp16, bf16, nvfp4 or one of FP8
  Format b = Format::fp16;                 ///< fp16, bf16, nvfp4 or one of FP8
  Format out = Format::fp16;               ///< fp16, bf16 or fp32
  bool bias = false;                       ///< the weights have a bias
  std::optional<Activation> activation{};  ///< relu2, or none
  bool operator==(const GemmProblem&) const = default;
};

/// B is contiguous if it has scales.
struct GemmWeights {
  Tensor b{};     ///< [N,K]
  Tensor bias{};  ///< optional: [N]; fp32, fp16 or bf16
};

/// Prepacked weights for one device: those of a grouped GEMM of one expert, from which they may be constructed.
class PackedGemmWeights {
 public:
  /// Throws Error(invalid_argument) for several experts, or for gate and up.
  explicit PackedGemmWeights(PackedGroupedWeights weights);
  [[nodiscard]] std::int64_t n() const noexcept { return grouped_.n(); }
  [[nodiscard]] std::int64_t k() const noexcept { return grouped_.k(); }
  [[nodiscard]] Format format() const noexcept { return grouped_.format(); }  ///< before packing
  [[nodiscard]] bool has_bias() const noexcept { return grouped_.has_bias(); }
  [[nodiscard]] Numerics numerics() const noexcept { return grouped_.numerics(); }
  [[nodiscard]] const Device& device() const noexcept { return grouped_.device(); }

  /// For blocks, which hold weights of grouped products (thresher/packed_block.hpp).
  [[nodiscard]] const PackedGroupedWeights& grouped() const noexcept { return grouped_; }

 private:
  PackedGroupedWeights grouped_;
};

/// The options of the dual GEMM: strategy, knobs (`numerics` among them) and threads.
using GemmOptions = DualGemmOptions;

/// A planned product, bound to its weights. It serves every number of rows up to the problem's. Threads and lifetimes
/// are as for DualGemm.
class Gemm {
 public:
  using Backend = ops::ProductPlan;
  Gemm(const GemmProblem& problem, std::shared_ptr<const Backend> backend)
      : problem_(problem), backend_(std::move(backend)) {}

  /// Writes C [rows,n] from A [rows,k], with 0 to problem.m rows. Tensors, alignments and `workspace` are as
  /// DualGemm::run says.
  /// Asynchronous on a GPU: no allocation, no synchronisation, graph-capturable. Synchronous on the CPU. Throws
  /// Error(invalid_argument) before anything is written.
  void run(Stream stream, const Tensor& a, const Tensor& c, void* workspace = nullptr) const;

  [[nodiscard]] std::size_t workspace_bytes() const;  ///< enough for every number of rows
  [[nodiscard]] const std::string& strategy() const;
  [[nodiscard]] const GemmProblem& problem() const noexcept { return problem_; }

 private:
  GemmProblem problem_;
  std::shared_ptr<const Backend> backend_;
};

/// Packs the weights for `device`.
PackedGemmWeights pack(const Device& device, const GemmWeights& weights, const PackOptions& options = {});

/// Chooses a strategy; may compile and allocate. Throws Error with a sentence that names argument, value and limit.
Gemm plan(const Device& device, const GemmProblem& problem, const PackedGemmWeights& weights,
          const GemmOptions& options = {});
/// The same from raw weights, which must outlive the plan.
Gemm plan(const Device& device, const GemmProblem& problem, const GemmWeights& weights,
          const GemmOptions& options = {});

/// Names of the strategies that `device` offers, the default first: those of the grouped products.
std::vector<std::string> gemm_strategies(const Device& device);

}  // namespace thresher

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::GemmProblem> {
  std::size_t operator()(const thresher::GemmProblem& problem) const noexcept;
};
