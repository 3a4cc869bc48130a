#include "ops/validate.hpp"

#include <fmt/format.h>

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

std::string text(DeviceId device) {
  return device.kind == DeviceKind::cpu ? "the CPU" : fmt::format("GPU {}", device.ordinal);
}

bool is_operand(Format format) { return format == Format::fp16 || format == Format::bf16 || format == Format::nvfp4; }
bool is_output(Format format) { return format == Format::fp16 || format == Format::bf16 || format == Format::fp32; }

/// K must fill whole scale groups (NVFP4) or 16-byte rows (16-bit formats).
std::int64_t k_multiple(Format format) { return format == Format::nvfp4 ? 16 : 8; }

bool aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
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
  if (format == Format::nvfp4) {
    if (tensor.scales == nullptr && rows > 0) {
      refuse("{} is nvfp4 but has no scales: set Tensor::scales", argument);
    }
    if (tensor.strides[0] % 2 != 0 && rows > 1) {
      refuse("{} has row stride {}, expected a multiple of 2 (nvfp4 rows start on a byte)", argument,
             tensor.strides[0]);
    }
  }
}

}  // namespace

void validate(const DualGemmProblem& problem) {
  if (!is_operand(problem.a)) {
    refuse("problem.a is {}, expected fp16, bf16 or nvfp4", name(problem.a));
  }
  if (!is_operand(problem.b)) {
    refuse("problem.b is {}, expected fp16, bf16 or nvfp4", name(problem.b));
  }
  if (!is_output(problem.out)) {
    refuse("problem.out is {}, expected fp16, bf16 or fp32", name(problem.out));
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
    if (problem.k % k_multiple(format) != 0) {
      refuse("problem.k is {}, expected a multiple of {} for {} operands", problem.k, k_multiple(format), name(format));
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
  if (!is_operand(b1_gate.format)) {
    refuse("b1 (gate) is {}, expected fp16, bf16 or nvfp4", name(b1_gate.format));
  }
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

}  // namespace

void validate_tokens(const DualGemmProblem& problem, const Tensor& a, const void* workspace,
                     std::size_t workspace_bytes, std::size_t alignment, DeviceId device) {
  validate_matrix_at("a", a, problem.a, problem.m, problem.k, alignment, device);
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
  validate_matrix_at("c", c, problem.out, problem.m, problem.n, alignment, device);
}

}  // namespace thresher::ops
