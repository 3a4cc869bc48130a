#pragma once
/// Matrices, and stacks of them, one per expert, loaded from files for the grouped products.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.hpp"
#include "formats/mxfp4.hpp"
#include "thresher/tensor.hpp"

namespace thresher::formats {

/// How I64 values that do not fit 32 bits are handled: rejected, or converted to -1, the id of an unassigned row.
enum class WideIntegers { refused, nobody };

/// The role of a tensor: tokens [rows,K], tokens in slots [E,rows,K], weights [E,rows,K] or those of one matrix
/// [rows,K]. Biases of weights are added.
enum class StackKind { tokens, slots, weights, matrix };

/// A tensor [rows,K] or [E,rows,K] with its memory.
class Stack {
 public:
  /// Refers to this object, which must outlive the view and not move.
  [[nodiscard]] Tensor view() const noexcept;
  [[nodiscard]] Format format() const noexcept { return format_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  /// "tensor 'b1' of model.safetensors", for error messages.
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const std::vector<float>& global_scales() const noexcept { return global_scales_; }
  /// The file has MXFP4, which is held as NVFP4 or bf16 (formats/mxfp4.hpp).
  [[nodiscard]] bool is_mxfp4() const noexcept { return mxfp4_span_.has_value(); }
  [[nodiscard]] std::string stored_as() const { return formats::stored_as(format_, mxfp4_span_); }
  /// Dequantizes MXFP4 that is held as NVFP4 to bf16.
  void widen();
  /// Transposes each matrix, which has 16-bit values. Throws Error(invalid_argument) for another format.
  void transpose();
  /// Keeps every second global scale, from `first` on: a fused tensor of gate and up has [E,2] of them.
  void keep_every_second_global_scale(std::size_t first);

 private:
  void hold(HeldMxfp4 held);

  friend Stack load_stack(const Checkpoint&, std::string_view, StackKind, ScaleLayout, std::size_t);
  friend Stack load_experts(const Checkpoint&, std::span<const std::string>, ScaleLayout);
  friend Stack load_mxfp4_blocks(const Checkpoint&, std::string_view);
  friend Stack load_numbers(const Checkpoint&, std::string_view);
  friend Stack load_integers(const Checkpoint&, std::string_view, WideIntegers);
  friend Stack numbers_of(const std::vector<float>&);

  Format format_ = Format::fp16;
  OperandRole role_ = OperandRole::weights;
  std::vector<std::int64_t> shape_;
  std::string source_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  ScaleLayout scale_layout_ = ScaleLayout::row_major;
  std::vector<float> global_scales_;
  std::optional<unsigned> mxfp4_span_;
};

/// The operand `name`, in the names and conventions of WeightParts. Scales of NVFP4 have K/16 in their last dimension;
/// blocked scales of one matrix follow those of the other. There are `scales_of_a_matrix` global scales per matrix, or
/// one for all. Throws Error(invalid_argument) with a sentence that names the file, the tensor, what it is and what was
/// expected.
[[nodiscard]] Stack load_stack(const Checkpoint& checkpoint, std::string_view name, StackKind kind, ScaleLayout layout,
                               std::size_t scales_of_a_matrix = 1);

/// Weights of several experts, each a separate matrix that load_operand reads, as one stack. If one in MXFP4 has to be
/// held in bf16, all of them are. Throws like load_operand, and when two of them differ in format or shape.
[[nodiscard]] Stack load_experts(const Checkpoint& checkpoint, std::span<const std::string> names, ScaleLayout layout);

/// MXFP4 weights of all experts in gpt-oss's form, held as hold_mxfp4 does. NAME_blocks is U8 [E,rows,K/32,16] with two
/// e2m1 per byte, the low half first; NAME_scales is U8 [E,rows,K/32]. Or NAME.blocks and NAME.scales. Throws like
/// load_stack and hold_mxfp4.
[[nodiscard]] Stack load_mxfp4_blocks(const Checkpoint& checkpoint, std::string_view name);

/// These values as F32 [n].
[[nodiscard]] Stack numbers_of(const std::vector<float>& values);

/// The type in which files hold an output of that format.
[[nodiscard]] Dtype stored_type(Format output) noexcept;

/// F32, F16 or BF16 of any shape, with no parts beside it. Throws like load_stack.
[[nodiscard]] Stack load_numbers(const Checkpoint& checkpoint, std::string_view name);

/// I32, or I64 converted to 32 bits, of any shape, with no parts beside it. Throws like load_stack.
[[nodiscard]] Stack load_integers(const Checkpoint& checkpoint, std::string_view name,
                                  WideIntegers beyond = WideIntegers::refused);

}  // namespace thresher::formats
