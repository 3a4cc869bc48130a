#pragma once
/// Matrices, and stacks of them, one for each expert, as files hold them for the grouped products.
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

/// What becomes of I64 values that 32 bits do not hold: refused, or -1, as ids that are nobody's.
enum class WideIntegers { refused, nobody };

/// What a tensor is for: tokens [rows,K], tokens in slots [E,rows,K], weights [E,rows,K] or those of one matrix
/// [rows,K]. Biases of weights are added.
enum class StackKind { tokens, slots, weights, matrix };

/// A tensor [rows,K] or [E,rows,K] with the memory it needs.
class Stack {
 public:
  /// Refers to this object, which must outlive the view and not move.
  [[nodiscard]] Tensor view() const noexcept;
  [[nodiscard]] Format format() const noexcept { return format_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  /// "tensor 'b1' of model.safetensors", for error messages.
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const std::vector<float>& global_scales() const noexcept { return global_scales_; }
  /// In the file it is MXFP4, which is held as NVFP4 or bf16 (formats/mxfp4.hpp).
  [[nodiscard]] bool is_mxfp4() const noexcept { return mxfp4_span_.has_value(); }
  [[nodiscard]] std::string stored_as() const { return formats::stored_as(format_, mxfp4_span_); }
  /// MXFP4 that is held as NVFP4, in bf16.
  void widen();
  /// Exchanges rows and columns of each matrix, which is in 16 bits. Throws Error(invalid_argument) for another.
  void transpose();
  /// Keeps every second one, from `first` on: of gate and up in one tensor, whose global scales are [E,2].
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

/// The operand `name`, in the names and conventions of WeightParts. Scales of NVFP4 have K/16 in their last dimension
/// (blocked ones: each matrix's behind the other's), and there are `scales_of_a_matrix` global scales for each matrix,
/// or one for all. Throws Error(invalid_argument) with a sentence that names the file, the tensor, what it is and what
/// was expected.
[[nodiscard]] Stack load_stack(const Checkpoint& checkpoint, std::string_view name, StackKind kind, ScaleLayout layout,
                               std::size_t scales_of_a_matrix = 1);

/// Weights of several experts, each a matrix of its own that load_operand reads, as one stack; where one in MXFP4 has
/// to be held in bf16, all of them are. Throws as that does, and when two of them differ in format or shape.
[[nodiscard]] Stack load_experts(const Checkpoint& checkpoint, std::span<const std::string> names, ScaleLayout layout);

/// MXFP4 weights of all experts as gpt-oss has them: NAME_blocks, U8 [E,rows,K/32,16] with two e2m1 a byte, the low
/// half first, and NAME_scales, U8 [E,rows,K/32], as hold_mxfp4 holds them. Throws like load_stack, and as that does.
[[nodiscard]] Stack load_mxfp4_blocks(const Checkpoint& checkpoint, std::string_view name);

/// F32 [n] of these.
[[nodiscard]] Stack numbers_of(const std::vector<float>& values);

/// As files hold an output of that format.
[[nodiscard]] Dtype stored_type(Format output) noexcept;

/// F32, F16 or BF16 of any shape, with no parts beside it. Throws like load_stack.
[[nodiscard]] Stack load_numbers(const Checkpoint& checkpoint, std::string_view name);

/// I32, or I64 brought to 32 bits, of any shape, with no parts beside it. Throws like load_stack.
[[nodiscard]] Stack load_integers(const Checkpoint& checkpoint, std::string_view name,
                                  WideIntegers beyond = WideIntegers::refused);

}  // namespace thresher::formats
