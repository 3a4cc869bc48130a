#include "ops/validate_attention.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "ops/tensor_checks.hpp"

namespace thresher {
namespace {

using ops::check_no_overlap;
using ops::check_place;
using ops::check_strides;
using ops::refuse;
using ops::Shape;

constexpr std::int64_t max_extent = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t row_alignment_elements = 8;
constexpr std::size_t data_alignment_bytes = 16;

void check_operand(std::string_view argument, const Tensor& tensor, Format format, const Shape& shape,
                   DeviceId device) {
  check_place(argument, tensor, format, shape, device, data_alignment_bytes);
  if (tensor.elements() > 0) {
    check_strides(argument, tensor, row_alignment_elements);
  }
}

void check_offsets(std::string_view argument, const Tensor& tensor, std::int64_t batch, std::int64_t rows,
                   DeviceId device) {
  check_place(argument, tensor, Format::int32, {batch + 1}, device, sizeof(std::int32_t));
  check_strides(argument, tensor, 1);
  if (device.kind == DeviceKind::cpu) {
    validate_cu_seqlens(argument, {static_cast<const std::int32_t*>(tensor.data), static_cast<std::size_t>(batch + 1)},
                        rows);
  }
}

void check_extent(std::string_view argument, std::int64_t extent, std::int64_t least) {
  if (extent < least || extent > max_extent) {
    refuse("problem.{} is {}, expected {} to {}", argument, extent, least, max_extent);
  }
}

}  // namespace

void validate_cu_seqlens(std::string_view argument, std::span<const std::int32_t> offsets, std::int64_t rows) {
  if (offsets.empty() || offsets.front() != 0) {
    refuse("{} starts with {}, expected 0", argument,
           offsets.empty() ? std::string("nothing") : std::to_string(offsets.front()));
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      refuse("{} decreases from {} to {} at index {}, expected offsets that never decrease", argument, offsets[i - 1],
             offsets[i], i);
    }
  }
  if (offsets.back() != rows) {
    refuse("{} ends with {}, expected the number of rows {}", argument, offsets.back(), rows);
  }
}

namespace ops {

void validate(const AttentionProblem& problem) {
  if (problem.format != Format::fp16 && problem.format != Format::bf16) {
    refuse("problem.format is {}, expected fp16 or bf16", name(problem.format));
  }
  if (problem.head_dim != 64 && problem.head_dim != 128) {
    refuse("problem.head_dim is {}, expected 64 or 128", problem.head_dim);
  }
  check_extent("batch", problem.batch, problem.variable_length ? 1 : 0);
  check_extent("heads", problem.heads, 1);
  check_extent("kv_heads", problem.kv_heads, 1);
  check_extent("queries", problem.queries, 0);
  check_extent("keys", problem.keys, 0);
  if (problem.heads % problem.kv_heads != 0) {
    refuse("problem.heads is {}, expected a multiple of problem.kv_heads, which is {}", problem.heads,
           problem.kv_heads);
  }
  if (problem.scale && !std::isfinite(*problem.scale)) {
    refuse("problem.scale is {}, expected a finite number", *problem.scale);
  }
  if (!(problem.softcap >= 0.0F) || !std::isfinite(problem.softcap)) {
    refuse("problem.softcap is {}, expected 0 (none) or a finite number above 0", problem.softcap);
  }
  for (const auto& [argument, window] :
       {std::pair{"window_left", problem.window_left}, std::pair{"window_right", problem.window_right}}) {
    if (window < -1 || window > max_extent) {
      refuse("problem.{} is {}, expected -1 (unbounded) to {}", argument, window, max_extent);
    }
  }
}

void validate_run(const AttentionProblem& problem, const AttentionTensors& tensors, DeviceId device) {
  const auto shape = [&](std::int64_t heads, std::int64_t rows) {
    return problem.variable_length ? Shape{rows, heads, problem.head_dim}
                                   : Shape{problem.batch, heads, rows, problem.head_dim};
  };
  check_operand("q", tensors.q, problem.format, shape(problem.heads, problem.queries), device);
  check_operand("k", tensors.k, problem.format, shape(problem.kv_heads, problem.keys), device);
  check_operand("v", tensors.v, problem.format, shape(problem.kv_heads, problem.keys), device);
  check_operand("o", tensors.o, problem.format, shape(problem.heads, problem.queries), device);
  if (tensors.o.elements() > 0) {
    check_no_overlap("o", tensors.o);
  }
  if (tensors.lse.data != nullptr) {
    check_place("lse", tensors.lse, Format::fp32,
                problem.variable_length ? Shape{problem.heads, problem.queries}
                                        : Shape{problem.batch, problem.heads, problem.queries},
                device, sizeof(float));
    if (tensors.lse.elements() > 0) {
      check_strides("lse", tensors.lse, 1);
      check_no_overlap("lse", tensors.lse);
    }
  }
  if (problem.variable_length) {
    check_offsets("cu_seqlens_q", tensors.cu_seqlens_q, problem.batch, problem.queries, device);
    check_offsets("cu_seqlens_k", tensors.cu_seqlens_k, problem.batch, problem.keys, device);
  }
}

}  // namespace ops
}  // namespace thresher
