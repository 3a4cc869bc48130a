#pragma once
/// The checks of one tensor, for the validation of every operation. Each throws Error(invalid_argument) with one
/// sentence that names the argument.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "thresher/dual_gemm.hpp"
#include "thresher/error.hpp"
#include "thresher/tensor.hpp"

namespace thresher::ops {

template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> sentence, Arguments&&... arguments) {
  throw Error(ErrorCode::invalid_argument, fmt::format(sentence, std::forward<Arguments>(arguments)...));
}

/// The alignment of one element, in bytes.
[[nodiscard]] std::size_t element_alignment(Format format);
/// The threads of a CPU; 0 for all.
void check_threads(int threads);

[[nodiscard]] bool is_aligned(const void* pointer, std::size_t alignment);

/// Up to max_rank extents. A call's checks allocate nothing.
class TensorShape {
 public:
  TensorShape() = default;
  TensorShape(std::initializer_list<std::int64_t> extents) : TensorShape(std::span(extents.begin(), extents.size())) {}
  explicit TensorShape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
    std::copy(extents.begin(), extents.end(), extents_.begin());
  }
  [[nodiscard]] const std::int64_t* begin() const { return extents_.data(); }
  [[nodiscard]] const std::int64_t* end() const { return extents_.data() + rank_; }
  bool operator==(const TensorShape&) const = default;

 private:
  std::array<std::int64_t, max_rank> extents_{};
  std::size_t rank_ = 0;
};

/// Rows and ids are int32 on every device.
inline constexpr std::int64_t max_extent = (std::int64_t{1} << 31) - 1;
/// An extent of a problem is between the least and max_extent.
void check_extent(std::string_view argument, std::int64_t extent, std::int64_t least);
/// The format of an operand of a problem.
void check_operand_format(std::string_view argument, Format format);
/// problem.out, and problem.n columns of it.
void check_output(Format out, std::int64_t n);
/// The format of a bias or of a layer's output, which has no scales.
void check_unscaled_output(std::string_view argument, Format format);
void check_activation(const Activation& activation);
/// Rejects one of a single matrix.
void check_gated(const Activation& activation);
/// problem.`argument` columns are a multiple of the k_multiple of every format.
void check_multiples(std::string_view argument, std::int64_t columns, std::initializer_list<Format> formats);
/// K is at least 1, and a multiple of both formats' k_multiple.
void check_depth(std::int64_t k, Format a, Format b);

/// No element lies further from the first than there are addresses: sums of strides do not overflow.
void check_reach(std::string_view argument, const Tensor& tensor);
/// Format, shape, device, data and its alignment, and reach.
void check_place(std::string_view argument, const Tensor& tensor, Format format, const TensorShape& shape,
                 DeviceId device, std::size_t alignment);
/// A contiguous tensor of 4-byte elements.
void check_list(std::string_view argument, const Tensor& list, Format format, const TensorShape& shape,
                DeviceId device);
/// q, k, v, or an output or a cache of them, whose rows are aligned to 16 bytes.
void check_operand(std::string_view argument, const Tensor& tensor, Format format, const TensorShape& shape,
                   DeviceId device);
/// problem.format is fp16 or bf16, and problem.`argument` is the same or fp8_e4m3.
void check_attention_format(std::string_view argument, Format format, Format problem_format);
/// The last dimension is contiguous; the others neither run backwards nor break the alignment of rows.
void check_strides(std::string_view argument, const Tensor& tensor, std::int64_t multiple);
/// Two indices of an output never name the same element.
void check_no_overlap(std::string_view argument, const Tensor& tensor);
/// The scales of a tensor: their address, format, block and layout.
void check_scales(std::string_view argument, const Tensor& tensor, OperandRole role);
/// A matrix [rows, columns] with rows that do not overlap, and with its scales. An output is like tokens.
void check_matrix(std::string_view argument, const Tensor& tensor, Format format, std::int64_t rows,
                  std::int64_t columns, DeviceId device, OperandRole role);
void check_alignment(std::string_view argument, const Tensor& tensor, std::size_t alignment);
/// There, and aligned as a Workspace is.
void check_workspace(const void* workspace, std::size_t bytes);
/// Neither the tensor nor what scales it lies in the workspace, which a call writes.
void check_outside_workspace(std::string_view argument, const Tensor& tensor, const void* workspace, std::size_t bytes);

/// The output and the scales that are written with it must not overlap an operand. Matrices may lie beside each other
/// in the same rows.
void check_not_overlapping(const Tensor& out, std::string_view argument, const Tensor& operand,
                           std::string_view output = "c");
/// The scales that are written with the output must not overlap its values.
void check_scales_not_overlapping(const Tensor& out, std::string_view output = "c");

}  // namespace thresher::ops
