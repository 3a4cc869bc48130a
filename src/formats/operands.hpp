#pragma once
/// Operands of an operation as files hold them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.hpp"
#include "thresher/tensor.hpp"

namespace thresher::formats {

/// A matrix [rows, k] in fp16, bf16, fp32 or nvfp4 with the memory it needs.
class Operand {
 public:
  /// Refers to this object, which must outlive the view and not move.
  [[nodiscard]] Tensor view() const noexcept;
  [[nodiscard]] Format format() const noexcept { return format_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t k() const noexcept { return k_; }

 private:
  friend Operand load_operand(const SafetensorsFile&, std::string_view, ScaleLayout);
  friend Operand load_matrix(const SafetensorsFile&, const StoredTensor&);

  Format format_ = Format::fp16;
  std::int64_t rows_ = 0;
  std::int64_t k_ = 0;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  ScaleLayout scale_layout_ = ScaleLayout::row_major;
  std::optional<float> global_scale_;
};

/// The operand `name`, stored as the tensor T = `name` or `name`.weight: F16 or BF16 [rows, K], or NVFP4 as U8 [rows,
/// K/2] with T_scale, F8_E4M3 in `scale_layout` ([rows, K/16] or flat; blocked in any shape of its size), and
/// optionally T_global_scale or, as ModelOpt names it, T_scale_2: one F32 that multiplies. Throws
/// Error(invalid_argument) with a sentence that names the file, the tensor, what it is and what was expected.
[[nodiscard]] Operand load_operand(const SafetensorsFile& file, std::string_view name,
                                   ScaleLayout scale_layout = ScaleLayout::row_major);

/// The F16, BF16 or F32 matrix `tensor` of `file`. Throws like load_operand.
[[nodiscard]] Operand load_matrix(const SafetensorsFile& file, const StoredTensor& tensor);

/// "tensor 'b1' of model.safetensors", for error messages.
[[nodiscard]] std::string described(const SafetensorsFile& file, const StoredTensor& tensor);

}  // namespace thresher::formats
