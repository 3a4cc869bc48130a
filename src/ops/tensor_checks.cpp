#include "ops/tensor_checks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/integers.hpp"

namespace thresher::ops {
namespace {

constexpr std::size_t workspace_alignment = 256;

/// "fp32, fp16 or bf16".
template <std::size_t count>
std::string one_of(const std::array<Format, count>& formats) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < count ? ", " : " or ", name(formats[i]));
  }
  return text;
}

std::string text(DeviceId device) {
  return device.kind == DeviceKind::cpu ? "the CPU" : fmt::format("GPU {}", device.ordinal);
}

TensorShape shape_of(const Tensor& tensor) {
  return TensorShape({tensor.shape.data(), static_cast<std::size_t>(tensor.rank)});
}

/// The bytes of a tensor with elements that does not run backwards: `rows` pieces of `row_bytes`, `pitch` apart. The
/// dimension of the largest stride has the rows, together with those inside it that go on at the same pitch.
struct Extent {
  std::uintptr_t begin;
  std::uintptr_t rows = 1;
  std::uintptr_t pitch = 0;
  std::uintptr_t row_bytes;

  explicit Extent(const Tensor& tensor) : begin(reinterpret_cast<std::uintptr_t>(tensor.data)) {
    struct Dimension {
      std::int64_t stride;
      std::int64_t extent;
    };
    std::vector<Dimension> dimensions;  // but the last, whose elements lie together
    for (int d = 0; d + 1 < tensor.rank; ++d) {
      if (tensor.shape[static_cast<std::size_t>(d)] > 1 && tensor.strides[static_cast<std::size_t>(d)] != 0) {
        dimensions.push_back({tensor.strides[static_cast<std::size_t>(d)], tensor.shape[static_cast<std::size_t>(d)]});
      }
    }
    std::stable_sort(dimensions.begin(), dimensions.end(),
                     [](const Dimension& a, const Dimension& b) { return a.stride > b.stride; });
    std::size_t next = 0;
    std::int64_t outermost = 0;
    for (; next < dimensions.size() && (next == 0 || dimensions[next].stride * dimensions[next].extent == outermost);
         ++next) {
      outermost = dimensions[next].stride;
      rows *= static_cast<std::uintptr_t>(dimensions[next].extent);
    }
    std::int64_t last = 0;
    if (tensor.rank > 0) {
      const auto innermost = static_cast<std::size_t>(tensor.rank - 1);
      last = (tensor.shape[innermost] - 1) * tensor.strides[innermost];
    }
    for (; next < dimensions.size(); ++next) {
      last += (dimensions[next].extent - 1) * dimensions[next].stride;
    }
    pitch = static_cast<std::uintptr_t>(outermost * bits(tensor.format) / 8);
    row_bytes = static_cast<std::uintptr_t>(((last + 1) * bits(tensor.format) + 7) / 8);
  }
  [[nodiscard]] std::uintptr_t end() const { return begin + (rows - 1) * pitch + row_bytes; }
};

bool share_memory(const Extent& one, const Extent& other) {
  if (one.rows * one.row_bytes == 0 || other.rows * other.row_bytes == 0 || one.end() <= other.begin ||
      other.end() <= one.begin) {
    return false;
  }
  const std::uintptr_t pitch = one.rows > 1 ? one.pitch : other.pitch;
  if ((one.rows == 1 && other.rows == 1) || (other.rows > 1 && other.pitch != pitch)) {
    return true;
  }
  // Two windows of columns of one matrix: apart if each ends before the other's next row begins.
  const std::uintptr_t low = std::min(one.begin, other.begin);
  const std::uintptr_t offset = (std::max(one.begin, other.begin) - low) % pitch;
  const std::uintptr_t first = one.begin == low ? one.row_bytes : other.row_bytes;
  const std::uintptr_t second = one.begin == low ? other.row_bytes : one.row_bytes;
  return offset < first || offset + second > pitch;
}

/// Bytes, and the end behind them.
using Span = std::pair<std::uintptr_t, std::uintptr_t>;

bool overlap(const Span& one, const Span& other) { return one.first < other.second && other.first < one.second; }

/// The bytes from the first to the last of any tensor that does not run backwards.
Span span_of(const Tensor& tensor) {
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
  std::int64_t last = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  return {begin, begin + static_cast<std::uintptr_t>(((last + 1) * bits(tensor.format) + 7) / 8)};
}

/// Whether two tensors with elements share memory.
bool may_share_memory(const Tensor& one, const Tensor& other) {
  return overlap(span_of(one), span_of(other)) && share_memory(Extent(one), Extent(other));
}

/// Scales that a call finds and writes with its output.
bool has_written_scales(const Tensor& c) {
  return format_traits(c.format).is_quantized_output() && format_traits(c.format).has_scales() &&
         c.scales.data != nullptr;
}

Span span_of(const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + bytes};
}

Span scales_of(const Tensor& c) { return span_of(c.scales.data, scale_bytes(c)); }

}  // namespace

std::size_t element_alignment(Format format) { return static_cast<std::size_t>(std::max(bits(format) / 8, 1)); }

void check_threads(int threads) {
  constexpr int max_threads = 1024;  // the knob's limit
  if (threads < 0 || threads > max_threads) {
    refuse("options.threads is {}, expected 0 (all) to {}", threads, max_threads);
  }
}

void check_reach(std::string_view argument, const Tensor& tensor) {
  constexpr std::int64_t most = std::int64_t{1} << 57;  // no memory has as many addresses
  std::int64_t last = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (tensor.shape[i] < 2 || tensor.strides[i] < 0) {
      continue;  // refused elsewhere where it matters
    }
    last += std::min(size_product(tensor.shape[i] - 1, tensor.strides[i]), most);
    if (last >= most) {
      refuse("{} has stride {} along dimension {}, expected at most {} with an extent of {}", argument,
             tensor.strides[i], d, most / tensor.shape[i], tensor.shape[i]);
    }
  }
}

bool is_aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

void check_extent(std::string_view argument, std::int64_t extent, std::int64_t least) {
  if (extent < least || extent > max_extent) {
    refuse("problem.{} is {}, expected {} to {}", argument, extent, least, max_extent);
  }
}

void check_operand_format(std::string_view argument, Format format) {
  if (!format_traits(format).is_operand) {
    refuse("{} is {}, expected {}", argument, name(format), one_of(operand_formats));
  }
}

void check_unscaled_output(std::string_view argument, Format format) {
  if (!format_traits(format).is_unscaled_output()) {
    refuse("{} is {}, expected {}", argument, name(format), one_of(unscaled_output_formats));
  }
}

void check_output(Format out, std::int64_t n) {
  const FormatTraits& traits = format_traits(out);
  if (!traits.is_output) {
    refuse("problem.out is {}, expected {}", traits.name, one_of(output_formats));
  }
  if (n % traits.n_multiple != 0) {
    refuse("problem.n is {}, expected a multiple of {} for {} outputs", n, traits.n_multiple, traits.name);
  }
}

void check_activation(const Activation& activation) {
  const bool is_situ = activation.kind == ActivationKind::situ;
  if (activation.kind != ActivationKind::swiglu_clamped && !is_situ) {
    return;
  }
  if (is_situ && !(activation.alpha > 0 && std::isfinite(activation.limit))) {
    refuse("activation.alpha is {} and activation.limit {}, expected finite numbers above 0 for situ", activation.alpha,
           activation.limit);
  }
  if (!(activation.limit > 0)) {
    refuse("activation.limit is {}, expected a number above 0", activation.limit);
  }
  if (!std::isfinite(activation.alpha) || !std::isfinite(activation.up_offset)) {
    refuse("activation.alpha is {} and activation.up_offset {}, expected finite numbers", activation.alpha,
           activation.up_offset);
  }
}

void check_gated(const Activation& activation) {
  if (!is_gated(activation)) {
    refuse("problem.activation is {}, which has no up, expected one of gate and up: use the GEMM",
           name(activation.kind));
  }
}

void check_multiples(std::string_view argument, std::int64_t columns, std::initializer_list<Format> formats) {
  for (const Format format : formats) {
    const int multiple = format_traits(format).k_multiple;
    if (columns % multiple != 0) {
      refuse("problem.{} is {}, expected a multiple of {} for {} operands", argument, columns, multiple, name(format));
    }
  }
}

void check_depth(std::int64_t k, Format a, Format b) {
  if (k == 0) {
    refuse("problem.k is 0, expected at least 1");
  }
  check_multiples("k", k, {a, b});
}

void check_place(std::string_view argument, const Tensor& tensor, Format format, const TensorShape& shape,
                 DeviceId device, std::size_t alignment) {
  if (tensor.format != format) {
    refuse("{} is {}, expected {}", argument, name(tensor.format), name(format));
  }
  if (tensor.rank < 1 || tensor.rank > max_rank || shape_of(tensor) != shape) {
    refuse("{} is [{}], expected [{}]", argument,
           fmt::join(tensor.rank < 1 || tensor.rank > max_rank ? TensorShape{} : shape_of(tensor), ", "),
           fmt::join(shape, ", "));
  }
  if (tensor.device != device) {
    refuse("{} is in the memory of {}, expected {}: copy it there first", argument, text(tensor.device), text(device));
  }
  if (tensor.elements() == 0) {
    return;
  }
  if (tensor.data == nullptr) {
    refuse("{} has a null data pointer", argument);
  }
  check_alignment(argument, tensor, alignment);
  check_reach(argument, tensor);
}

void check_operand(std::string_view argument, const Tensor& tensor, Format format, const TensorShape& shape,
                   DeviceId device) {
  constexpr std::size_t row_alignment = 16;
  check_place(argument, tensor, format, shape, device, row_alignment);
  if (tensor.elements() > 0) {
    check_strides(argument, tensor, static_cast<std::int64_t>(row_alignment) * 8 / bits(format));
  }
}

void check_attention_format(std::string_view argument, Format format, Format problem_format) {
  if (problem_format != Format::fp16 && problem_format != Format::bf16) {
    refuse("problem.format is {}, expected fp16 or bf16", name(problem_format));
  }
  if (format != problem_format && format != Format::fp8_e4m3) {
    refuse("problem.{} is {}, expected {} (problem.format) or fp8_e4m3", argument, name(format), name(problem_format));
  }
}

void check_list(std::string_view argument, const Tensor& list, Format format, const TensorShape& shape,
                DeviceId device) {
  check_place(argument, list, format, shape, device, sizeof(std::int32_t));
  if (!list.is_contiguous()) {
    refuse("{} is not contiguous, expected elements one behind the other", argument);
  }
}

void check_strides(std::string_view argument, const Tensor& tensor, std::int64_t multiple) {
  const int last = tensor.rank - 1;
  if (tensor.strides[static_cast<std::size_t>(last)] != 1 && tensor.shape[static_cast<std::size_t>(last)] > 1) {
    refuse("{} has stride {} along its last dimension, expected 1 (contiguous)", argument,
           tensor.strides[static_cast<std::size_t>(last)]);
  }
  for (int d = 0; d < last; ++d) {
    const std::int64_t stride = tensor.strides[static_cast<std::size_t>(d)];
    if (tensor.shape[static_cast<std::size_t>(d)] > 1 && (stride < 0 || stride % multiple != 0)) {
      refuse("{} has stride {} along dimension {}, expected a multiple of {} elements that is not negative", argument,
             stride, d, multiple);
    }
  }
}

void check_no_overlap(std::string_view argument, const Tensor& tensor) {
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> dimensions{};  // stride, extent
  std::size_t count = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[static_cast<std::size_t>(d)] > 1) {
      dimensions[count++] = {tensor.strides[static_cast<std::size_t>(d)], tensor.shape[static_cast<std::size_t>(d)]};
    }
  }
  const std::span used(dimensions.begin(), count);
  std::sort(used.begin(), used.end());
  std::int64_t reach = 1;
  for (const auto& [stride, extent] : used) {
    if (stride < reach) {
      refuse("{} has overlapping rows: a stride of {} where the smaller dimensions reach over {} elements", argument,
             stride, reach);
    }
    reach = (extent - 1) * stride + reach;
  }
}

void check_scales(std::string_view argument, const Tensor& tensor, OperandRole role) {
  const FormatTraits& traits = format_traits(tensor.format);
  if (tensor.scales.powers_of_two && traits.scale_format != Format::fp32) {
    refuse("{}.scales are to be powers of two, which {} has none of: fp8_row and fp8_block outputs may have them",
           argument, traits.name);
  }
  if (!traits.has_scales() && tensor.scales.data != nullptr) {
    refuse("{} is {} with scales, expected none", argument, traits.name);
  }
  if (!traits.has_scales() && tensor.global_scale != nullptr && tensor.format != Format::fp8_tensor) {
    refuse("{} is {} with a global scale, expected none", argument, traits.name);
  }
  if (!traits.has_scales()) {
    if (tensor.scales.layout != ScaleLayout::row_major) {
      refuse("{}.scales are {}, but {} has none: leave the layout row-major", argument, name(tensor.scales.layout),
             traits.name);
    }
    return;
  }
  const Scales& scales = tensor.scales;
  const Scales::Block block =
      scale_block_of(tensor.format, role, tensor.shape[static_cast<std::size_t>(std::max(tensor.rank - 1, 0))]);
  if (scales.data == nullptr && tensor.elements() > 0) {
    refuse("{} is {} but has no scales: set Tensor::scales.data", argument, traits.name);
  }
  if (scales.format != traits.scale_format) {
    refuse("{}.scales are {}, expected {} for {}", argument, name(scales.format), name(traits.scale_format),
           traits.name);
  }
  if (scales.block != block) {
    refuse("{}.scales are one for {} rows and {} columns, expected {} and {} for {}", argument, scales.block.rows,
           scales.block.columns, block.rows, block.columns, traits.name);
  }
  if (!may_lie(scales.layout, tensor.format, role)) {
    refuse("{}.scales are {}, which scales of {} in {} cannot be", argument, name(scales.layout),
           role == OperandRole::tokens ? "tokens" : "weights", traits.name);
  }
  if (!is_aligned(scales.data, static_cast<std::size_t>(bits(scales.format)) / 8)) {
    refuse("{}.scales start at {}, expected an address that is a multiple of {} bytes", argument, fmt::ptr(scales.data),
           bits(scales.format) / 8);
  }
  if (tensor.global_scale != nullptr && scales.format != Format::fp8_e4m3) {
    refuse("{} is {} with a global scale, expected its scales alone", argument, traits.name);
  }
}

void check_matrix(std::string_view argument, const Tensor& tensor, Format format, std::int64_t rows,
                  std::int64_t columns, DeviceId device, OperandRole role) {
  if (tensor.format != format) {
    refuse("{} is {}, but the problem says {}", argument, name(tensor.format), name(format));
  }
  if (tensor.rank != 2) {
    refuse("{} has {} dimensions, expected 2", argument, tensor.rank);
  }
  if (tensor.shape[0] != rows || tensor.shape[1] != columns) {
    refuse("{} is [{}, {}], expected [{}, {}]", argument, tensor.shape[0], tensor.shape[1], rows, columns);
  }
  if (rows < 0 || columns < 0) {
    refuse("{} is [{}, {}], expected extents of 0 or more", argument, rows, columns);
  }
  if (tensor.strides[1] != 1 && columns > 1) {
    refuse("{} has stride {} along its last dimension, expected 1 (contiguous)", argument, tensor.strides[1]);
  }
  if (tensor.strides[0] < columns && rows > 1) {
    refuse("{} has row stride {}, which is less than its row length {}", argument, tensor.strides[0], columns);
  }
  if (tensor.device != device) {
    refuse("{} is in the memory of {}, expected {}: copy it there first", argument, text(tensor.device), text(device));
  }
  if (tensor.data == nullptr && rows > 0 && columns > 0) {
    refuse("{} has a null data pointer", argument);
  }
  check_reach(argument, tensor);
  check_scales(argument, tensor, role);
  const FormatTraits& traits = format_traits(format);
  if (role == OperandRole::weights) {
    check_alignment(argument, tensor, element_alignment(format));
  }
  const int values_per_byte = std::max(8 / traits.bits, 1);
  if (tensor.strides[0] % values_per_byte != 0 && rows > 1) {
    refuse("{} has row stride {}, expected a multiple of {} ({} rows start on a byte)", argument, tensor.strides[0],
           values_per_byte, traits.name);
  }
}

void check_alignment(std::string_view argument, const Tensor& tensor, std::size_t alignment) {
  if (!is_aligned(tensor.data, alignment)) {
    refuse("{} starts at {}, expected an address that is a multiple of {} bytes", argument, fmt::ptr(tensor.data),
           alignment);
  }
}

void check_workspace(const void* workspace, std::size_t bytes) {
  if (bytes > 0 && workspace == nullptr) {
    refuse("workspace is null, expected {} bytes (workspace_bytes())", bytes);
  }
  if (bytes > 0 && !is_aligned(workspace, workspace_alignment)) {
    refuse("workspace starts at {}, expected an address that is a multiple of {} bytes", fmt::ptr(workspace),
           workspace_alignment);
  }
}

void check_outside_workspace(std::string_view argument, const Tensor& tensor, const void* workspace,
                             std::size_t bytes) {
  if (bytes == 0 || tensor.rank == 0 || tensor.elements() == 0 || tensor.data == nullptr) {
    return;
  }
  const Span written = span_of(workspace, bytes);
  if (may_share_memory(tensor, Tensor::contiguous(const_cast<void*>(workspace), Format::uint8,
                                                  {static_cast<std::int64_t>(bytes)}, tensor.device))) {
    refuse("{} shares memory with the workspace, expected a workspace apart from every tensor", argument);
  }
  const bool has_scales = format_traits(tensor.format).has_scales() && tensor.scales.data != nullptr;
  if ((has_scales && overlap(scales_of(tensor), written)) ||
      (tensor.global_scale != nullptr && overlap(span_of(tensor.global_scale, sizeof(float)), written))) {
    refuse("{}.scales share memory with the workspace, expected a workspace apart from every tensor", argument);
  }
}

void check_not_overlapping(const Tensor& out, std::string_view argument, const Tensor& operand,
                           std::string_view output) {
  if (out.device == operand.device && out.elements() > 0 && operand.elements() > 0 && may_share_memory(out, operand)) {
    refuse("{} shares memory with {}, expected an output apart from every operand", output, argument);
  }
  if (has_written_scales(out) && out.device == operand.device && operand.elements() > 0 &&
      overlap(scales_of(out), span_of(operand))) {
    refuse("{}.scales share memory with {}, expected scales apart from every tensor", output, argument);
  }
}

void check_scales_not_overlapping(const Tensor& out, std::string_view output) {
  if (has_written_scales(out) && out.elements() > 0 && overlap(scales_of(out), span_of(out))) {
    refuse("{}.scales share memory with the values of {}, expected scales apart from every tensor", output, output);
  }
}

}  // namespace thresher::ops
