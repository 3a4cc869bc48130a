#pragma once
/// Whether an output is right: the one tolerance that everything is compared under, and a verdict that carries its
/// evidence.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/dual_gemm_fast.hpp"
#include "reference/region.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::reference {

/// How far an output may lie from the float64 definition.
enum class Rule : std::uint8_t {
  /// Twice the error of the plain low-precision computation plus 1 ulp of the output format. That error is taken part
  /// by part: the largest of gate and of up in the same tile, carried through the activation; the largest of the
  /// float32 activation in that tile; and half an ulp for the rounding to the output format.
  general,
  /// 1e-3 + 1e-3·|reference|: fp16 outputs of the contest's input distribution.
  contest,
  /// The reference rounded to the output format, bit for bit but for the sign of zero: inputs of small integers.
  exact,
};

[[nodiscard]] std::string_view name(Rule rule) noexcept;

/// One output: where, what it is, what it should be and how far off it may be. Where NaN or Inf is wrong or missing
/// the bound is 0.
struct ElementEvidence {
  std::int64_t row = -1;
  std::int64_t column = -1;
  double value = 0.0;
  double reference = 0.0;
  double bound = 0.0;
  /// error / bound, at most 1 if the output is right; Inf for a wrong NaN or Inf.
  double ratio = 0.0;
};

/// The scale of a requantised output that is none of those that its values may give.
struct ScaleEvidence {
  std::int64_t row = -1;
  std::int64_t column = -1;  ///< the first that it multiplies
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// One tile of the output: its first row and column, and how its elements fared.
struct TileEvidence {
  std::int64_t row = -1;
  std::int64_t column = -1;
  std::int64_t elements = 0;
  std::int64_t wrong = 0;
  double rms_ratio = 0.0;       ///< root mean square of error / bound
  double relative_error = 0.0;  ///< ‖value − reference‖ / ‖reference‖ over finite elements, 0 where both are 0
};

/// Evidence for one comparison; without elements it passes and both places are -1.
struct [[nodiscard]] Verdict {
  bool passed = true;
  Rule rule = Rule::general;
  std::int64_t elements = 0;
  std::int64_t wrong = 0;
  ElementEvidence worst;    ///< the largest error / bound
  TileEvidence worst_tile;  ///< most wrong elements, then the largest rms_ratio
  std::int64_t wrong_scales = 0;
  ScaleEvidence first_wrong_scale;

  /// One sentence.
  [[nodiscard]] std::string explain() const;
  /// Takes in what was found of other outputs of the same call, whose rows are counted from `first_row` on.
  void include(Verdict other, std::int64_t first_row);
};

/// A matrix of outputs, as far as its tolerance depends on what it is.
struct OutputMatrix {
  std::int64_t m = 0;
  std::int64_t n = 0;
  Format out = Format::fp16;
  std::optional<Activation> activation{};  ///< none: the gate itself
  const float* row_weights = nullptr;      ///< m of them; null: 1
  std::int64_t first_row = 0;              ///< where they begin in the tensor that they lie in

  [[nodiscard]] double row_weight(std::int64_t row) const noexcept {
    return row_weights == nullptr ? 1.0 : static_cast<double>(row_weights[row]);
  }
};
[[nodiscard]] OutputMatrix output_of(const DualGemmProblem& problem) noexcept;

/// The largest errors of the plain computation in some elements, in what makes up an output.
struct PlainErrors {
  double gate = 0.0;
  double up = 0.0;
  double activation = 0.0;
};

/// Over all elements of both, which are the definition and plain_low_precision on the same region.
[[nodiscard]] PlainErrors plain_errors(const std::optional<Activation>& activation, const Outputs& reference,
                                       const Outputs& plain);

/// How far an output of `row` may lie from the definition's, whose gate and up these are.
[[nodiscard]] double bound_for(const OutputMatrix& of, Rule rule, std::int64_t row, double gate, double up,
                               const PlainErrors& plain);

/// error / bound of one output, at most 1 if it is right; Inf for a wrong NaN or Inf. An Inf is right where the bound
/// reaches past the format's range.
[[nodiscard]] double error_ratio(Rule rule, Format out, double value, double reference, double bound);

/// Judges outputs [m, n] over a region; they are rows first_row to first_row + m − 1 of `c`. `reference` and `plain`
/// are dual_gemm_fast and plain_low_precision over that region; only Rule::general reads `plain`, whose accumulation is
/// that of the device that made c. NaN and Inf must stand where the reference has them (or where `plain` has them,
/// whose float32 sums can overflow on the way to a finite one) and nowhere else; an output at the edge of the format's
/// range may be Inf if the bound reaches past it. Of a requantised output a value may be whatever a number within the
/// bound of the definition becomes under the scale that is there; a scale is one that the largest of such numbers may
/// give, and where it is not, all that it multiplies is wrong. Regions have all columns that share such a scale. A tile
/// of one or two fp32 outputs can be unlucky: the plain computation may happen to be exact there. Throws
/// Error(invalid_argument) when c or a size does not fit.
Verdict judge(const OutputMatrix& of, Rule rule, const Region& region, const Outputs& reference, const Outputs& plain,
              const Tensor& c);
Verdict judge(const DualGemmProblem& problem, Rule rule, const Region& region, const Outputs& reference,
              const Outputs& plain, const Tensor& c);

/// The same, computing both from the operands on `threads` threads (0: one for each processor).
Verdict judge_dual_gemm(const DualGemmProblem& problem, Rule rule, const Tensor& a, const Tensor& b1_gate,
                        const Tensor& b2_up, const Tensor& c, const Region& region,
                        Accumulation accumulation = Accumulation::float32, int threads = 0);

}  // namespace thresher::reference
