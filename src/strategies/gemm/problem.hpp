#pragma once
/// One problem for every product of the library: the dual GEMM, the GEMM, the grouped dual GEMM and the grouped GEMM.
#include <cstdint>
#include <optional>

#include "thresher/dual_gemm.hpp"
#include "thresher/gemm.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::gemm {

/// How the rows of the experts lie.
enum class ProductRows : std::uint8_t {
  dense,       ///< one matrix: all rows belong to one set of weights, and a call brings no offsets
  contiguous,  ///< experts' rows one behind the other, from offsets[e] to offsets[e + 1]
  masked,      ///< a capacity for each expert, of which it owns the first counts[e] rows
  gathered,    ///< contiguous rows of C, each of which names its row of A
};

/// C = activation(A·gateᵀ, A·upᵀ), C = A·Bᵀ or C = relu2(A·Bᵀ), for each expert's rows.
struct ProductProblem {
  ProductRows layout = ProductRows::dense;
  std::int64_t experts = 1;  ///< dense: 1
  std::int64_t rows = 0;     ///< at most, of C; masked: of one expert
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t tokens = 0;         ///< gathered: the most rows of A
  std::int64_t expected_rows = 0;  ///< rows that experts own in a usual call; 0: unknown
  std::int64_t row_ids_divisor = 1;
  Format a = Format::fp16;
  Format b = Format::fp16;
  Format out = Format::fp16;
  std::optional<Activation> activation{};  ///< of gate and up, or relu2 of one matrix
  bool bias = false;
  bool row_weights = false;
  bool operator==(const ProductProblem&) const = default;

  ProductProblem() = default;
  ProductProblem(const DualGemmProblem& problem);  // NOLINT: each of the public problems is one
  ProductProblem(const GemmProblem& problem);      // NOLINT
  ProductProblem(const GroupedProblem& problem);   // NOLINT

  [[nodiscard]] int matrices() const noexcept { return is_gated(activation) ? 2 : 1; }
  [[nodiscard]] bool is_dense() const noexcept { return layout == ProductRows::dense; }

  /// The dual GEMM that it is; it is dense and has two matrices.
  [[nodiscard]] DualGemmProblem dual_gemm() const;
  /// The grouped product that it is; dense rows are those of one expert.
  [[nodiscard]] GroupedProblem grouped() const;
};

}  // namespace thresher::strategies::gemm

namespace thresher::strategies::moe_layer {
using namespace gemm;
}
