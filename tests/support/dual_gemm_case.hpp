#pragma once
/// Owned operands and output of one dual GEMM, random and reproducible.
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "formats/fp8.hpp"
#include "formats/nvfp4.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::test {

/// How operands are laid out: elements between a row's end and the next row, and the scales.
struct Layout {
  std::int64_t row_gap = 0;
  std::int64_t out_row_gap = 0;
  ScaleLayout scales = ScaleLayout::row_major;
  bool global_scales = true;
  ScaleLayout out_scales = ScaleLayout::row_major;
  bool out_powers_of_two = false;
};

/// An owned matrix. Gaps between rows hold a pattern that must survive.
class Matrix {
 public:
  using Values = std::function<float(std::int64_t row, std::int64_t column)>;
  using Codes = std::function<std::uint8_t(std::int64_t row, std::int64_t column)>;

  /// fp16, bf16 or fp32, each value rounded once.
  static Matrix of_values(Format format, std::int64_t rows, std::int64_t columns, std::int64_t row_gap,
                          const Values& value);
  /// From e2m1 codes and e4m3 scale codes (column: of the block of 16).
  static Matrix nvfp4(std::int64_t rows, std::int64_t columns, const Layout& layout, const Codes& code,
                      const Codes& scale, float global_scale);

  /// Quantised from values, to scales that `role` has and that lie as the layout says where they may.
  static Matrix fp8(Format format, OperandRole role, std::int64_t rows, std::int64_t columns, const Layout& layout,
                    const Values& value);
  /// Values that e4m3 holds exactly, times scales of 1/2, 1 and 2.
  static Matrix exact_fp8(Format format, OperandRole role, std::int64_t rows, std::int64_t columns,
                          const Layout& layout, const Values& value);

  /// An output of any format, `matrices` of so many rows one behind the other, all poisoned. Where it is quantized
  /// the global scale takes what a random case yields into the range of the format.
  static Matrix output(Format format, std::int64_t matrices, std::int64_t rows, std::int64_t columns,
                       const Layout& layout);

  /// Valid until this object is moved or destroyed.
  [[nodiscard]] Tensor view();
  /// Replaces one element of a 16-bit matrix.
  void set_pattern(std::int64_t row, std::int64_t column, std::uint16_t pattern);
  void set_value(std::int64_t row, std::int64_t column, float value);
  /// Replaces the scale of `row` and of its block `block`.
  void set_scale(std::int64_t row, std::int64_t block, std::uint8_t code);
  /// Makes a stack of matrices of so many rows, each with NVFP4 scales of its own; blocked ones do not lie so else.
  void stack_scales(std::int64_t rows);
  /// Moves the scales so many bytes behind where an allocation starts.
  void move_scales(std::size_t bytes);
  /// Takes over the elements of a matrix of the same shape and layout; views stay valid.
  void assign(const Matrix& other);
  [[nodiscard]] double value(std::int64_t row, std::int64_t column);
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  [[nodiscard]] const std::vector<std::uint8_t>& scales() const { return scales_; }
  /// Whether a row, its scales included, is as poison leaves it.
  [[nodiscard]] bool is_poison(std::int64_t row);
  /// Overwrites everything, gaps included, with a NaN pattern.
  void poison();
  /// Whether the gaps between rows are as they were made or poisoned.
  [[nodiscard]] bool gaps_intact() const;

 private:
  Matrix(Format format, std::int64_t rows, std::int64_t columns, std::int64_t row_gap);
  static Matrix of_quantised(formats::Fp8Matrix quantised, const Layout& layout);
  /// Of NVFP4, in bytes.
  [[nodiscard]] std::size_t scale_at(std::int64_t row, std::int64_t block) const;

  Format format_;
  OperandRole role_ = OperandRole::tokens;
  std::int64_t rows_;
  std::int64_t scaled_rows_;  ///< of each matrix that has scales of its own
  std::int64_t columns_;
  std::int64_t row_stride_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> scales_;
  std::size_t scales_at_ = 0;  ///< bytes of `scales_` before the first
  ScaleLayout scale_layout_ = ScaleLayout::row_major;
  bool powers_of_two_ = false;
  float global_scale_ = 1.0F;
  bool has_global_scale_ = false;
};

struct DualGemmCase {
  DualGemmProblem problem;
  Matrix a;
  Matrix b1_gate;
  Matrix b2_up;
  Matrix c;  ///< poisoned

  /// Gate and up have standard deviations near 4 and 3 (with NVFP4 without global scales: more). NVFP4 has every e2m1
  /// code and, with global scales, every finite scale code.
  static DualGemmCase random(const DualGemmProblem& problem, const Layout& layout = {}, unsigned seed = 1);
  /// Small integers, so that every sum is exact in float32; gates are so large that σ is 1 in float64 too.
  static DualGemmCase integers(const DualGemmProblem& problem, const Layout& layout = {}, unsigned seed = 1);
};

}  // namespace thresher::test
