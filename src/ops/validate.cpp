#include "ops/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

constexpr std::int64_t max_extent = std::int64_t{1} << 31;
constexpr std::size_t workspace_alignment = 256;

template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> sentence, Arguments&&... arguments) {
  throw Error(ErrorCode::invalid_argument, fmt::format(sentence, std::forward<Arguments>(arguments)...));
}

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

bool aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

void validate_scales(std::string_view argument, const Tensor& tensor, const FormatTraits& traits) {
  const Scales& scales = tensor.scales;
  if (scales.data == nullptr && tensor.shape[0] > 0) {
    refuse("{} is {} but has no scales: set Tensor::scales.data", argument, traits.name);
  }
  if (scales.format != traits.scale_format) {
    refuse("{}.scales are {}, expected {} for {}", argument, name(scales.format), name(traits.scale_format),
           traits.name);
  }
  if (scales.block.rows != 1 || scales.block.columns != traits.values_per_scale) {
    refuse("{}.scales are one for {} rows and {} columns, expected 1 and {} for {}", argument, scales.block.rows,
           scales.block.columns, traits.values_per_scale, traits.name);
  }
}

void require_operand(std::string_view argument, Format format) {
  if (!format_traits(format).is_operand) {
    refuse("{} is {}, expected {}", argument, name(format), one_of(operand_formats));
  }
}

void validate_matrix(std::string_view argument, const Tensor& tensor, Format format, std::int64_t rows,
                     std::int64_t columns, DeviceId device) {
  if (tensor.format != format) {
    refuse("{} is {}, but the problem says {}", argument, name(tensor.format), name(format));
  }
  if (tensor.rank != 2) {
    refuse("{} has {} dimensions, expected 2", argument, tensor.rank);
  }
  if (tensor.shape[0] != rows || tensor.shape[1] != columns) {
    refuse("{} is [{}, {}], expected [{}, {}]", argument, tensor.shape[0], tensor.shape[1], rows, columns);
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
  const FormatTraits& traits = format_traits(format);
  if (traits.has_scales()) {
    validate_scales(argument, tensor, traits);
  }
  const int values_per_byte = std::max(8 / traits.bits, 1);
  if (tensor.strides[0] % values_per_byte != 0 && rows > 1) {
    refuse("{} has row stride {}, expected a multiple of {} ({} rows start on a byte)", argument, tensor.strides[0],
           values_per_byte, traits.name);
  }
}

}  // namespace

void validate(const DualGemmProblem& problem) {
  require_operand("problem.a", problem.a);
  require_operand("problem.b", problem.b);
  if (!format_traits(problem.out).is_output) {
    refuse("problem.out is {}, expected {}", name(problem.out), one_of(output_formats));
  }
  for (const auto& [argument, extent] :
       {std::pair{"m", problem.m}, std::pair{"n", problem.n}, std::pair{"k", problem.k}}) {
    if (extent < 0 || extent >= max_extent) {
      refuse("problem.{} is {}, expected 0 to {}", argument, extent, max_extent - 1);
    }
  }
  if (problem.k == 0) {
    refuse("problem.k is 0, expected at least 1");
  }
  for (const Format format : {problem.a, problem.b}) {
    const int multiple = format_traits(format).k_multiple;
    if (problem.k % multiple != 0) {
      refuse("problem.k is {}, expected a multiple of {} for {} operands", problem.k, multiple, name(format));
    }
  }
  if (problem.activation.kind == ActivationKind::swiglu_clamped) {
    if (!(problem.activation.limit > 0)) {
      refuse("activation.limit is {}, expected a number above 0", problem.activation.limit);
    }
    if (!std::isfinite(problem.activation.alpha) || !std::isfinite(problem.activation.up_offset)) {
      refuse("activation.alpha is {} and activation.up_offset {}, expected finite numbers", problem.activation.alpha,
             problem.activation.up_offset);
    }
  }
}

void validate_pair(const Tensor& b1_gate, const Tensor& b2_up, DeviceId device) {
  require_operand("b1 (gate)", b1_gate.format);
  validate_matrix("b1 (gate)", b1_gate, b1_gate.format, b1_gate.shape[0], b1_gate.shape[1], device);
  validate_matrix("b2 (up)", b2_up, b1_gate.format, b1_gate.shape[0], b1_gate.shape[1], device);
}

void validate_weights(const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up, DeviceId device) {
  validate_matrix("b1 (gate)", b1_gate, problem.b, problem.n, problem.k, device);
  validate_matrix("b2 (up)", b2_up, problem.b, problem.n, problem.k, device);
}

namespace {

void validate_matrix_at(const char* argument, const Tensor& tensor, Format format, std::int64_t rows,
                        std::int64_t columns, std::size_t alignment, DeviceId device) {
  validate_matrix(argument, tensor, format, rows, columns, device);
  if (!aligned(tensor.data, alignment)) {
    refuse("{} starts at {}, expected an address that is a multiple of {} bytes", argument, fmt::ptr(tensor.data),
           alignment);
  }
}

/// The bytes of a matrix: `rows` pieces of `row_bytes`, `pitch` apart.
struct Extent {
  std::uintptr_t begin;
  std::uintptr_t rows;
  std::uintptr_t pitch;
  std::uintptr_t row_bytes;

  explicit Extent(const Tensor& matrix)
      : begin(reinterpret_cast<std::uintptr_t>(matrix.data)),
        rows(static_cast<std::uintptr_t>(matrix.shape[0])),
        pitch(static_cast<std::uintptr_t>(matrix.strides[0] * bits(matrix.format) / 8)),
        row_bytes(static_cast<std::uintptr_t>(matrix.shape[1] * bits(matrix.format) / 8)) {}
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

}  // namespace

void validate_apart(const Tensor& c, const char* argument, const Tensor& operand) {
  if (c.device == operand.device && share_memory(Extent(c), Extent(operand))) {
    refuse("c shares memory with {}, expected an output apart from every operand", argument);
  }
}

void validate_tokens(const DualGemmProblem& problem, const Tensor& a, const void* workspace,
                     std::size_t workspace_bytes, std::size_t alignment, DeviceId device) {
  if (a.rank == 2 && (a.shape[0] < 0 || a.shape[0] > problem.m)) {
    refuse("a has {} rows, expected 0 to {}, which the plan was made for", a.shape[0], problem.m);
  }
  validate_matrix_at("a", a, problem.a, a.shape[0], problem.k, alignment, device);
  if (workspace_bytes > 0 && workspace == nullptr) {
    refuse("workspace is null, expected {} bytes (workspace_bytes())", workspace_bytes);
  }
  if (workspace_bytes > 0 && !aligned(workspace, workspace_alignment)) {
    refuse("workspace starts at {}, expected an address that is a multiple of {} bytes", fmt::ptr(workspace),
           workspace_alignment);
  }
}

void validate_run(const DualGemmProblem& problem, const Tensor& a, const Tensor& c, const void* workspace,
                  std::size_t workspace_bytes, std::size_t alignment, DeviceId device) {
  validate_tokens(problem, a, workspace, workspace_bytes, alignment, device);
  validate_matrix_at("c", c, problem.out, a.shape[0], problem.n, alignment, device);
  validate_apart(c, "a", a);
}

}  // namespace thresher::ops
