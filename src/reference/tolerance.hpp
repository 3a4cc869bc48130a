#pragma once
/// Whether an output is right: one tolerance for all comparisons, and a verdict with its evidence.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/dual_gemm_fast.hpp"
#include "reference/region.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::reference {

/// The allowed distance of an output from the float64 definition.
enum class Rule : std::uint8_t {
  /// Twice the error of the plain low-precision computation plus 1 ulp of the output format. That error has these
  /// parts: the maximum error of gate and of up in the same tile, carried through the activation; the maximum error of
  /// the float32 activation in that tile; half an ulp for the rounding to the output format.
  general,
  /// 1e-3 + 1e-3·|reference|: fp16 outputs of the contest's input distribution.
  contest,
  /// The reference rounded to the output format, bit for bit except for the sign of zero: inputs of small integers.
  exact,
};

[[nodiscard]] std::string_view name(Rule rule) noexcept;

/// One output: its position, its value, its reference and the allowed error. If NaN or Inf is wrong or missing, the
/// bound is 0.
struct ElementEvidence {
  std::int64_t row = -1;
  std::int64_t column = -1;
  double value = 0.0;
  double reference = 0.0;
  double bound = 0.0;
  /// error / bound, at most 1 if the output is right; Inf for a wrong NaN or Inf.
  double ratio = 0.0;
};

/// A wrong scale of a quantized output: one that its values cannot give.
struct ScaleEvidence {
  std::int64_t row = -1;
  std::int64_t column = -1;  ///< the first column that it multiplies
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// One tile of the output: its first row and column, and a summary of its errors.
struct TileEvidence {
  std::int64_t row = -1;
  std::int64_t column = -1;
  std::int64_t elements = 0;
  std::int64_t wrong = 0;
  double rms_ratio = 0.0;       ///< root mean square of error / bound
  double relative_error = 0.0;  ///< ‖value − reference‖ / ‖reference‖ over finite elements, 0 where both are 0
};

/// Evidence for one comparison; without elements it passes and both positions are -1.
struct [[nodiscard]] Verdict {
  bool passed = true;
  Rule rule = Rule::general;
  std::int64_t elements = 0;
  std::int64_t wrong = 0;
  ElementEvidence worst;    ///< the maximum error / bound
  TileEvidence worst_tile;  ///< most wrong elements, then the maximum rms_ratio
  std::int64_t wrong_scales = 0;
  ScaleEvidence first_wrong_scale;

  /// One sentence.
  [[nodiscard]] std::string explain() const;
  /// Merges the verdict on other outputs of the same call, whose rows are counted from `first_row` on.
  void include(Verdict other, std::int64_t first_row);
};

/// The properties of a matrix of outputs that its tolerance depends on.
struct OutputMatrix {
  std::int64_t m = 0;
  std::int64_t n = 0;
  Format out = Format::fp16;
  std::optional<Activation> activation{};  ///< none: the gate itself
  const float* row_weights = nullptr;      ///< m of them; null: 1
  std::int64_t first_row = 0;              ///< of the matrix within its tensor

  [[nodiscard]] double row_weight(std::int64_t row) const noexcept {
    return row_weights == nullptr ? 1.0 : static_cast<double>(row_weights[row]);
  }
};
[[nodiscard]] OutputMatrix output_of(const DualGemmProblem& problem) noexcept;

/// The maximum errors of the plain computation in some elements, for each part of an output.
struct PlainErrors {
  double gate = 0.0;
  double up = 0.0;
  double activation = 0.0;
};

/// Over all elements of both, which are the definition and plain_low_precision on the same region.
[[nodiscard]] PlainErrors plain_errors(const std::optional<Activation>& activation, const Outputs& reference,
                                       const Outputs& plain);

/// The allowed distance of an output of `row` from the definition's, which has this gate and up.
[[nodiscard]] double bound_for(const OutputMatrix& of, Rule rule, std::int64_t row, double gate, double up,
                               const PlainErrors& plain);

/// error / bound of one output, at most 1 if it is right; Inf for a wrong NaN or Inf. An Inf is right if the bound
/// exceeds the format's range.
[[nodiscard]] double error_ratio(Rule rule, Format out, double value, double reference, double bound);

/// Checks outputs [m, n] over a region; they are rows first_row to first_row + m − 1 of `c`. `reference` and `plain`
/// are dual_gemm_fast and plain_low_precision over that region. Only Rule::general reads `plain`, whose accumulation is
/// that of the device that made c.
///
/// NaN and Inf must be where the reference has them and nowhere else, with two exceptions. They may be where `plain`
/// has them, whose float32 sums can overflow on the way to a finite one. An output at the edge of the format's range
/// may be Inf if the bound exceeds the range.
///
/// A value of a quantized output is right if a number within the bound of the definition becomes it under the given
/// scale. A scale is right if the maximum of such numbers may give it; a wrong scale makes all its values wrong.
/// Regions have all columns that share such a scale.
///
/// A tile of one or two fp32 outputs can fail by chance: the plain computation may happen to be exact there. Throws
/// Error(invalid_argument) when c or a size does not fit.
Verdict judge(const OutputMatrix& of, Rule rule, const Region& region, const Outputs& reference, const Outputs& plain,
              const Tensor& c);
Verdict judge(const DualGemmProblem& problem, Rule rule, const Region& region, const Outputs& reference,
              const Outputs& plain, const Tensor& c);

/// The same, computing both from the operands on `threads` threads (0: one per processor).
Verdict judge_dual_gemm(const DualGemmProblem& problem, Rule rule, const Tensor& a, const Tensor& b1_gate,
                        const Tensor& b2_up, const Tensor& c, const Region& region,
                        Accumulation accumulation = Accumulation::float32, int threads = 0);

}  // namespace thresher::reference
