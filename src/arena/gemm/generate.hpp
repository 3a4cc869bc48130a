#pragma once
/// Random matrices for the operands of matrix products.
#include <cstdint>
#include <string>
#include <vector>

#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/gemm/task.hpp"
#include "arena/random.hpp"

namespace thresher::arena {

/// Draws the operands of products one after another. `gemm` says K, formats and with them their magnitudes.
class OperandSource {
 public:
  OperandSource(const DualGemmProblem& gemm, ScaleLayout layout, Distribution distribution, std::uint64_t seed);
  /// The next one, [rows, k]. "a" is no weight; gates of integers are made with "b1" (docs/harness/tournament.md).
  [[nodiscard]] HostTensor draw(const std::string& name, std::int64_t rows);

 private:
  DualGemmProblem gemm_;
  ScaleLayout layout_;
  Distribution distribution_;
  Random random_;
};

/// "a", "b1" (gate) and "b2" (up) of a dual GEMM, the same for the same seed on every machine.
[[nodiscard]] std::vector<HostTensor> dual_gemm_inputs(const ProductTask& task, Distribution distribution,
                                                       std::uint64_t seed);
/// Such an "a" alone, without the time that the weights take.
[[nodiscard]] std::vector<HostTensor> dual_gemm_activations(const ProductTask& task, Distribution distribution,
                                                            std::uint64_t seed);

/// Every gate of `Distribution::integers` is at least this or exactly 0: from here on σ is 1 in float64, so that the
/// activation is exact whatever computes it.
inline constexpr int integer_gate_floor = 48;

}  // namespace thresher::arena
