#pragma once
/// The tensors of a file that make up one operand, and their meaning.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.hpp"
#include "thresher/tensor.hpp"

namespace thresher::formats {

/// The storage of values.
enum class Stored : std::uint8_t { plain, nvfp4, mxfp4, fp8 };

/// Scales of FP8 in float32, and the format that their shape implies.
struct Fp8Scales {
  Format format = Format::fp8_tensor;
  std::vector<std::byte> scales;     ///< empty for fp8_tensor
  std::vector<float> global_scales;  ///< fp8_tensor: one per matrix
};

/// Whether "zero_point" of "b1_zero_point" names a part of the tensor b1, in upper or lower case.
[[nodiscard]] bool names_part(std::string_view ending);

/// The parts of the tensor `values`, which is X or X.weight: every X.… and X.weight_…, and each X_… that names a bias,
/// a scale, a zero point or an order. The values themselves and scales of the layer's input (input_scale,
/// input_global_scale) are not among them. The name `values` need not be a tensor's, as for NAME_blocks and
/// NAME_scales.
[[nodiscard]] std::vector<std::string> parts_beside(const Checkpoint& checkpoint, std::string_view values);

/// Throws Error(invalid_argument) if a part is not among `used`: every part beside a tensor is read or rejected.
/// Readers other than WeightParts call it.
void refuse_parts_beside(const Checkpoint& checkpoint, std::string_view values, std::span<const std::string> used = {});

/// The operand `name`, with T = `name` or `name`.weight, in one of these conventions:
///   plain             T, F16 or BF16;
///   NVFP4, ModelOpt   T, U8, with T_scale and optionally T_scale_2, F32 that multiplies;
///   NVFP4, compressed-tensors  T_packed, U8, with T_scale and T_global_scale, F32 that divides;
///   MXFP4             T_packed (compressed-tensors) or T (ModelOpt), U8, with T_scale, U8 or F8_E8M0: exponents of 2;
///   MXFP4, DeepSeek-V4  X.weight, I8, with X.scale, F8_E8M0;
///   FP8               T, F8_E4M3, with T_scale (ModelOpt, compressed-tensors), T_scale_inv (DeepSeek) or X.scale
///                     (DeepSeek-V4), F32, BF16, F16 or F8_E8M0 that multiplies whatever its name.
/// Scales that are NaN or Inf, and per-tensor scales that are not above 0, are rejected (formats/sound_scales.hpp).
/// Scales of the layer's input (X.input_scale, X.input_global_scale) are ignored. Any other tensor of the layer is
/// rejected (parts_beside), as is a T_global_scale beside T. Everything throws Error(invalid_argument) with a sentence
/// that names the file, the tensor, what it is and what was expected.
class WeightParts {
 public:
  /// Refers to `checkpoint`. Throws when it has no tensor of the values, or several.
  WeightParts(const Checkpoint& checkpoint, std::string_view name);

  [[nodiscard]] LocatedTensor values() const { return checkpoint_.find(values_name_); }
  /// T_scale, or DeepSeek-V4's X.scale if that is there instead.
  [[nodiscard]] std::string scales_name() const;
  /// The global scale, which multiplies or, beside T_packed, divides.
  [[nodiscard]] std::string global_scale_name() const { return is_packed_ ? divisor_name() : factor_name(); }
  /// X.bias or X_bias for X and X.weight: the existing one, X.bias without one. Throws if both exist.
  [[nodiscard]] std::string bias_name() const;

  /// The storage of the values. Throws when it is unsupported, and when there are unread parts; the bias is one unless
  /// the operation adds it.
  [[nodiscard]] Stored check(bool adds_bias) const;

  /// The scales of FP8 values of that shape, [rows, K] or [matrices, rows, K]. They are one per matrix, [rows] or
  /// [rows, 1], or per-block as Format::fp8_block has them for `role`. `layout` may say that those of tokens are
  /// column-major.
  [[nodiscard]] Fp8Scales fp8_scales(const std::vector<std::int64_t>& shape, OperandRole role,
                                     ScaleLayout layout) const;

  /// The scales of NVFP4 values of that shape, [rows, K] or [matrices, rows, K], in F8_E4M3. Row-major ones have K/16
  /// in the last dimension or are flat. Blocked ones have any shape of their size, one matrix behind the other.
  [[nodiscard]] std::vector<std::byte> scales(const std::vector<std::int64_t>& shape, ScaleLayout layout) const;

  /// The exponents of MXFP4 values of that shape, [rows, K] or [matrices, rows, K]: row-major with K/32 in the last
  /// dimension.
  [[nodiscard]] std::vector<std::byte> exponents(const std::vector<std::int64_t>& shape, ScaleLayout layout) const;
  /// "tensor 'b1_scale' of model.safetensors", which must exist.
  [[nodiscard]] std::string scales_title() const { return described(checkpoint_.find(scales_name())); }

  /// As many factors as `wanted`: those in the file, of which a single one counts for all. Empty without the tensor.
  [[nodiscard]] std::vector<float> global_scales(std::size_t wanted) const;

 private:
  [[nodiscard]] std::string factor_name() const { return base_ + "_scale_2"; }
  [[nodiscard]] std::string divisor_name() const { return base_ + "_global_scale"; }
  [[nodiscard]] std::string inverse_name() const { return base_ + "_scale_inv"; }
  [[noreturn]] void refuse_type() const;
  [[noreturn]] void refuse_ambiguous_scale() const;
  [[nodiscard]] bool has_exponents() const;
  void check_scales(Stored stored) const;
  void refuse_other_parts(Stored stored, bool adds_bias) const;

  const Checkpoint& checkpoint_;
  std::string values_name_;
  std::string base_;  ///< values_name_ without "_packed": the base of the scales' names
  bool is_packed_ = false;
};

/// K of values that are two per byte. Throws Error(invalid_argument) if it is no multiple of the values per scale.
[[nodiscard]] std::int64_t unpacked_k(const LocatedTensor& values, Stored stored);

/// "tensor 'b1' of model.safetensors is F16 [4, 4]", for error messages.
[[nodiscard]] std::string described_with_type(const LocatedTensor& located);

}  // namespace thresher::formats
