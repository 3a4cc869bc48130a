#pragma once
/// Operands of an operation, loaded from checkpoints.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.hpp"
#include "formats/mxfp4.hpp"
#include "thresher/grouped_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::formats {

/// A matrix [rows, k] in fp16, bf16, fp32 or nvfp4, with its memory.
class Operand {
 public:
  /// Refers to this object, which must outlive the view and not move.
  [[nodiscard]] Tensor view() const noexcept;
  [[nodiscard]] Format format() const noexcept { return format_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t k() const noexcept { return k_; }
  /// "tensor 'b1' of model.safetensors", for error messages.
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// The file has MXFP4, which is held as NVFP4 or bf16 (formats/mxfp4.hpp).
  [[nodiscard]] bool is_mxfp4() const noexcept { return mxfp4_span_.has_value(); }
  [[nodiscard]] unsigned mxfp4_span() const noexcept { return mxfp4_span_.value_or(0); }
  [[nodiscard]] std::string stored_as() const { return formats::stored_as(format_, mxfp4_span_); }
  /// Dequantizes MXFP4 that is held as NVFP4 to bf16.
  void widen();

 private:
  friend class OperandReader;
  friend Operand load_matrix(const LocatedTensor&);
  friend Operand rows_of(const Operand&, std::string_view, std::int64_t, std::int64_t);

  Format format_ = Format::fp16;
  OperandRole role_ = OperandRole::weights;
  std::int64_t rows_ = 0;
  std::int64_t k_ = 0;
  std::string source_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  ScaleLayout scale_layout_ = ScaleLayout::row_major;
  std::optional<float> global_scale_;
  std::optional<unsigned> mxfp4_span_;
};

struct GateUp {
  Operand gate;
  Operand up;
};

/// The operand `name`, in the names and conventions of WeightParts, with one global scale; a bias is rejected. Throws
/// Error(invalid_argument) with a sentence that names the file, the tensor, what it is and what was expected.
[[nodiscard]] Operand load_operand(const Checkpoint& checkpoint, std::string_view name,
                                   ScaleLayout scale_layout = ScaleLayout::row_major,
                                   OperandRole role = OperandRole::weights);

/// The halves of the operand `name` [2·N, K], read like any other; both have the one global scale. Throws
/// Error(invalid_argument) when the number of rows is odd, or when a row of gate and one of up share a scale.
[[nodiscard]] GateUp load_gate_up(const Checkpoint& checkpoint, std::string_view name, GateUpOrder order,
                                  ScaleLayout scale_layout = ScaleLayout::row_major);

/// An F16, BF16 or F32 matrix. Throws like load_operand.
[[nodiscard]] Operand load_matrix(const LocatedTensor& tensor);

}  // namespace thresher::formats
