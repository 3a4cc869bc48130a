#pragma once
/// Which tensors of a file make up one operand, and what they mean there.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.hpp"
#include "thresher/tensor.hpp"

namespace thresher::formats {

/// How values are stored.
enum class Stored : std::uint8_t { plain, nvfp4, mxfp4, fp8 };

/// Scales of FP8 in float32, and the format that their shape makes of the values.
struct Fp8Scales {
  Format format = Format::fp8_tensor;
  std::vector<std::byte> scales;     ///< none of fp8_tensor
  std::vector<float> global_scales;  ///< of fp8_tensor: one for each matrix
};

/// Whether "zero_point" of "b1_zero_point" names a part of the tensor b1, in whatever case.
[[nodiscard]] bool names_part(std::string_view ending);

/// The parts of the tensor `values`, which is X or X.weight: every X.… and X.weight_…, and each X_… that a bias, a
/// scale, a zero point or an order is named. Without the values themselves and what scales the layer's input
/// (input_scale, input_global_scale). The name `values` need not be a tensor's, as that of NAME_blocks and NAME_scales
/// is not.
[[nodiscard]] std::vector<std::string> parts_beside(const Checkpoint& checkpoint, std::string_view values);

/// Throws Error(invalid_argument) where one of these is not among `used`: whatever is given beside a tensor is read or
/// refused. What reads a tensor by other means than WeightParts calls it.
void refuse_parts_beside(const Checkpoint& checkpoint, std::string_view values, std::span<const std::string> used = {});

/// The operand `name`, with T = `name` or `name`.weight, in one of these conventions:
///   plain             T, F16 or BF16;
///   NVFP4, ModelOpt   T, U8, with T_scale and optionally T_scale_2, F32 that multiplies;
///   NVFP4, compressed-tensors  T_packed, U8, with T_scale and T_global_scale, F32 that divides;
///   MXFP4             T_packed (compressed-tensors) or T (ModelOpt), U8, with T_scale, U8 or F8_E8M0: exponents of 2;
///   MXFP4, DeepSeek-V4  X.weight, I8, with X.scale, F8_E8M0;
///   FP8               T, F8_E4M3, with T_scale (ModelOpt, compressed-tensors), T_scale_inv (DeepSeek) or X.scale
///                     (DeepSeek-V4), F32, BF16, F16 or F8_E8M0 that multiplies whatever its name.
/// Scales that are NaN or Inf, and those of whole matrices that are not above 0, are refused
/// (formats/sound_scales.hpp). What scales the layer's input (X.input_scale, X.input_global_scale) is left aside; any
/// other tensor of the layer is refused (parts_beside), as is a T_global_scale beside T. Everything throws
/// Error(invalid_argument) with a sentence that names the file, the tensor, what it is and what was expected.
class WeightParts {
 public:
  /// Refers to `checkpoint`. Throws when it has none of the values, or several.
  WeightParts(const Checkpoint& checkpoint, std::string_view name);

  [[nodiscard]] LocatedTensor values() const { return checkpoint_.find(values_name_); }
  /// T_scale, or DeepSeek-V4's X.scale where that is there instead.
  [[nodiscard]] std::string scales_name() const;
  /// Of what multiplies or, beside T_packed, divides.
  [[nodiscard]] std::string global_scale_name() const { return is_packed_ ? divisor_name() : factor_name(); }
  /// X.bias or X_bias of X and of X.weight: the one that is there, X.bias without one. Throws where both are.
  [[nodiscard]] std::string bias_name() const;

  /// How the values are stored. Throws when it is in no way that is read, and when there are parts that are not read:
  /// among them the bias, but where the operation adds it.
  [[nodiscard]] Stored check(bool adds_bias) const;

  /// The scales of FP8 values of that shape, [rows, K] or [matrices, rows, K], for each matrix one, [rows] or [rows,
  /// 1], or those of blocks as Format::fp8_block has them for `role`; column-major ones of tokens where `layout` says
  /// so.
  [[nodiscard]] Fp8Scales fp8_scales(const std::vector<std::int64_t>& shape, OperandRole role,
                                     ScaleLayout layout) const;

  /// The scales of NVFP4 values of that shape, [rows, K] or [matrices, rows, K]: F8_E4M3, row-major with K/16 in the
  /// last dimension or flat; blocked in any shape of their size, one matrix behind the other.
  [[nodiscard]] std::vector<std::byte> scales(const std::vector<std::int64_t>& shape, ScaleLayout layout) const;

  /// The exponents of MXFP4 values of that shape, [rows, K] or [matrices, rows, K]: row-major with K/32 in the last
  /// dimension.
  [[nodiscard]] std::vector<std::byte> exponents(const std::vector<std::int64_t>& shape, ScaleLayout layout) const;
  /// "tensor 'b1_scale' of model.safetensors", which is there.
  [[nodiscard]] std::string scales_title() const { return described(checkpoint_.find(scales_name())); }

  /// As many factors as `wanted`: those that are there, of which one is for all. None without the tensor.
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
  std::string base_;  ///< values_name_ without "_packed": what scales are named after
  bool is_packed_ = false;
};

/// K of values of which a byte has two. Throws Error(invalid_argument) where it is no multiple of what shares a scale.
[[nodiscard]] std::int64_t unpacked_k(const LocatedTensor& values, Stored stored);

/// "tensor 'b1' of model.safetensors is F16 [4, 4]", for error messages.
[[nodiscard]] std::string described_with_type(const LocatedTensor& located);

}  // namespace thresher::formats
