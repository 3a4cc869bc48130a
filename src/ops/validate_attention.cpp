#include "ops/validate_attention.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/integers.hpp"
#include "ops/tensor_checks.hpp"

namespace thresher {
namespace {

using ops::check_attention_format;
using ops::check_extent;
using ops::check_no_overlap;
using ops::check_not_overlapping;
using ops::check_operand;
using ops::check_outside_workspace;
using ops::check_place;
using ops::check_strides;
using ops::max_extent;
using ops::refuse;
using ops::TensorShape;

void check_offsets(std::string_view argument, const Tensor& tensor, std::int64_t batch, std::int64_t rows,
                   DeviceId device) {
  check_place(argument, tensor, Format::int32, {batch + 1}, device, sizeof(std::int32_t));
  check_strides(argument, tensor, 1);
  if (device.kind == DeviceKind::cpu) {
    validate_cu_seqlens(argument, {static_cast<const std::int32_t*>(tensor.data), static_cast<std::size_t>(batch + 1)},
                        rows);
  }
}

/// "64, 128 or 256".
template <std::size_t count>
std::string alternatives(const std::array<std::int64_t, count>& numbers) {
  return fmt::format("{} or {}", fmt::join(numbers.begin(), numbers.end() - 1, ", "), numbers.back());
}

template <std::size_t count>
void check_width(std::string_view argument, std::int64_t width, const std::array<std::int64_t, count>& expected) {
  if (std::find(expected.begin(), expected.end(), width) == expected.end()) {
    refuse("problem.{} is {}, expected {}", argument, width, alternatives(expected));
  }
}

void check_formats(const AttentionProblem& problem) {
  const Format keys = effective_kv_format(problem);
  const Format queries = effective_q_format(problem);
  check_attention_format("kv_format", keys, problem.format);
  check_attention_format("q_format", queries, problem.format);
  if (queries == Format::fp8_e4m3 && keys != Format::fp8_e4m3) {
    refuse("problem.q_format is fp8_e4m3, which takes problem.kv_format fp8_e4m3 too, not {}", name(keys));
  }
}

void check_pages(const AttentionProblem& problem) {
  if (problem.page_size == 0) {
    if (problem.pages != 0) {
      refuse("problem.pages is {} without problem.page_size: set both, or neither", problem.pages);
    }
    return;
  }
  check_extent("page_size", problem.page_size, 1);
  check_extent("pages", problem.pages, 1);
  if (!problem.variable_length) {
    refuse("problem.page_size is {}, which takes problem.variable_length: queries are packed where keys are in pages",
           problem.page_size);
  }
}

/// Rejects a missing tensor that the problem needs. `reason` returns a text.
void check_given(std::string_view argument, const Tensor& tensor, const auto& reason) {
  if (tensor.rank == 0) {
    refuse("{} is missing, but {}", argument, reason());
  }
}

/// Rejects a tensor that the problem does not use.
void check_absent(std::string_view argument, const Tensor& tensor, std::string_view reason) {
  if (tensor.data != nullptr) {
    refuse("{} is given, but {}: leave it empty", argument, reason);
  }
}

/// Checks block_table and seqused_k on `device`, but not their contents.
void check_table(const AttentionProblem& problem, const Tensor& block_table, const Tensor& seqused_k, DeviceId device) {
  const auto reason = [&] { return fmt::format("problem.page_size is {}", problem.page_size); };
  check_given("seqused_k", seqused_k, reason);
  check_given("block_table", block_table, reason);
  check_place("seqused_k", seqused_k, Format::int32, {problem.batch}, device, sizeof(std::int32_t));
  check_strides("seqused_k", seqused_k, 1);
  check_place("block_table", block_table, Format::int32, {problem.batch, ceil_div(problem.keys, problem.page_size)},
              device, sizeof(std::int32_t));
  check_strides("block_table", block_table, 1);
}

void check_page_table(const AttentionProblem& problem, const AttentionTensors& tensors, DeviceId device) {
  if (problem.page_size == 0) {
    constexpr std::string_view reason = "problem.page_size is 0 (no pages)";
    check_absent("block_table", tensors.block_table, reason);
    check_absent("seqused_k", tensors.seqused_k, reason);
    return;
  }
  check_absent("cu_seqlens_k", tensors.cu_seqlens_k, "seqused_k and block_table say where the pages of keys lie");
  if (device.kind == DeviceKind::cpu) {
    validate_pages(problem, tensors.block_table, tensors.seqused_k);
  } else {
    check_table(problem, tensors.block_table, tensors.seqused_k, device);
  }
}

void check_sinks(const AttentionProblem& problem, const Tensor& sinks, DeviceId device) {
  if (!problem.sinks) {
    check_absent("sinks", sinks, "problem.sinks is false");
    return;
  }
  check_given("sinks", sinks, [] { return "problem.sinks is true"; });
  check_place("sinks", sinks, Format::fp32, {problem.heads}, device, sizeof(float));
  check_strides("sinks", sinks, 1);
}

/// Checks the descale of tensors in `format`. Strides of 0 are allowed.
void check_descale(std::string_view argument, const AttentionProblem& problem, Format format, std::string_view of,
                   const Tensor& descale, DeviceId device) {
  if (format != Format::fp8_e4m3) {
    check_absent(argument, descale, fmt::format("{} are not fp8_e4m3", of));
    return;
  }
  if (descale.data == nullptr) {
    return;
  }
  check_place(argument, descale, Format::fp32, {problem.batch, problem.kv_heads}, device, sizeof(float));
  for (const std::size_t dimension : {0, 1}) {
    if (descale.strides[dimension] < 0) {
      refuse("{} has stride {} along dimension {}, expected 0 or more", argument, descale.strides[dimension],
             dimension);
    }
  }
  if (device.kind != DeviceKind::cpu) {
    return;
  }
  for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
    for (std::int64_t head = 0; head < problem.kv_heads; ++head) {
      const float factor =
          static_cast<const float*>(descale.data)[sequence * descale.strides[0] + head * descale.strides[1]];
      if (factor < 0.0F || !std::isfinite(factor)) {
        refuse("{}[{}, {}] is {}, expected a finite number that is not negative", argument, sequence, head, factor);
      }
    }
  }
}

/// Outputs and the workspace must not overlap operands or one another.
void check_outputs_not_overlapping(const AttentionTensors& tensors, const void* workspace,
                                   std::size_t workspace_bytes) {
  for (const auto& [argument, output] : {std::pair{"o", &tensors.o}, std::pair{"lse", &tensors.lse}}) {
    check_outside_workspace(argument, *output, workspace, workspace_bytes);
  }
  for (const auto& [argument, operand] :
       {std::pair{"q", &tensors.q}, std::pair{"k", &tensors.k}, std::pair{"v", &tensors.v},
        std::pair{"cu_seqlens_q", &tensors.cu_seqlens_q}, std::pair{"cu_seqlens_k", &tensors.cu_seqlens_k},
        std::pair{"block_table", &tensors.block_table}, std::pair{"seqused_k", &tensors.seqused_k},
        std::pair{"sinks", &tensors.sinks}, std::pair{"q_descale", &tensors.q_descale},
        std::pair{"k_descale", &tensors.k_descale}, std::pair{"v_descale", &tensors.v_descale}}) {
    if (operand->data == nullptr) {
      continue;
    }
    check_outside_workspace(argument, *operand, workspace, workspace_bytes);
    check_not_overlapping(tensors.o, argument, *operand, "o");
    if (tensors.lse.data != nullptr) {
      check_not_overlapping(tensors.lse, argument, *operand, "lse");
    }
  }
  if (tensors.lse.data != nullptr) {
    check_not_overlapping(tensors.o, "lse", tensors.lse, "o");
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
  if (offsets.back() > rows) {
    refuse("{} ends with {}, expected at most {}, the number of rows", argument, offsets.back(), rows);
  }
}

void validate_pages(const AttentionProblem& problem, const Tensor& block_table, const Tensor& seqused_k) {
  check_extent("page_size", problem.page_size, 1);
  check_table(problem, block_table, seqused_k, {});
  const auto* const lengths = static_cast<const std::int32_t*>(seqused_k.data);
  const auto* const table = static_cast<const std::int32_t*>(block_table.data);
  for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
    const std::int64_t keys = lengths[sequence];
    if (keys < 0 || keys > problem.keys) {
      refuse("seqused_k[{}] is {}, expected 0 to problem.keys, which is {}", sequence, keys, problem.keys);
    }
    for (std::int64_t place = 0; place * problem.page_size < keys; ++place) {
      const std::int32_t page = table[sequence * block_table.strides[0] + place];
      if (page < 0 || page >= problem.pages) {
        refuse("block_table[{}, {}] is {}, expected 0 to {}: there are {} pages", sequence, place, page,
               problem.pages - 1, problem.pages);
      }
    }
  }
}

namespace ops {

void validate(const AttentionProblem& problem) {
  check_formats(problem);
  check_width("head_dim", problem.head_dim, head_dims);
  if (problem.value_dim != 0) {
    check_width("value_dim", problem.value_dim, value_dims);
  } else if (problem.head_dim == head_dims.back()) {
    refuse("problem.value_dim is 0 (problem.head_dim, which is {}), expected {}: the columns of v decide it",
           problem.head_dim, alternatives(value_dims));
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
  check_pages(problem);
}

Tensor expanded_descale(Tensor descale, const AttentionProblem& problem) {
  if (descale.rank != 2) {
    return descale;
  }
  const std::array<std::int64_t, 2> extents{problem.batch, problem.kv_heads};
  for (const std::size_t dimension : {0, 1}) {
    if (descale.shape[dimension] == 1) {
      descale.shape[dimension] = extents[dimension];
      descale.strides[dimension] = 0;
    }
  }
  return descale;
}

void validate_run(const AttentionProblem& problem, const AttentionTensors& tensors, const void* workspace,
                  std::size_t workspace_bytes, DeviceId device) {
  const auto shape = [&](std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return problem.variable_length ? TensorShape{rows, heads, width} : TensorShape{problem.batch, heads, rows, width};
  };
  const auto key_shape = [&](std::int64_t width) {
    return problem.page_size > 0 ? TensorShape{problem.pages, problem.page_size, problem.kv_heads, width}
                                 : shape(problem.kv_heads, problem.keys, width);
  };
  const std::int64_t value_dim = effective_value_dim(problem);
  const Format queries = effective_q_format(problem);
  const Format keys = effective_kv_format(problem);
  check_operand("q", tensors.q, queries, shape(problem.heads, problem.queries, problem.head_dim), device);
  check_operand("k", tensors.k, keys, key_shape(problem.head_dim), device);
  check_operand("v", tensors.v, keys, key_shape(value_dim), device);
  check_operand("o", tensors.o, problem.format, shape(problem.heads, problem.queries, value_dim), device);
  if (tensors.o.elements() > 0) {
    check_no_overlap("o", tensors.o);
  }
  if (tensors.lse.data != nullptr) {
    check_place("lse", tensors.lse, Format::fp32,
                problem.variable_length ? TensorShape{problem.heads, problem.queries}
                                        : TensorShape{problem.batch, problem.heads, problem.queries},
                device, sizeof(float));
    if (tensors.lse.elements() > 0) {
      check_strides("lse", tensors.lse, 1);
      check_no_overlap("lse", tensors.lse);
    }
  }
  if (problem.variable_length) {
    check_offsets("cu_seqlens_q", tensors.cu_seqlens_q, problem.batch, problem.queries, device);
    if (problem.page_size == 0) {
      check_offsets("cu_seqlens_k", tensors.cu_seqlens_k, problem.batch, problem.keys, device);
    }
  } else {
    constexpr std::string_view reason = "problem.variable_length is false";
    check_absent("cu_seqlens_q", tensors.cu_seqlens_q, reason);
    check_absent("cu_seqlens_k", tensors.cu_seqlens_k, reason);
  }
  check_page_table(problem, tensors, device);
  check_sinks(problem, tensors.sinks, device);
  check_descale("q_descale", problem, queries, "queries", tensors.q_descale, device);
  check_descale("k_descale", problem, keys, "keys and values", tensors.k_descale, device);
  check_descale("v_descale", problem, keys, "keys and values", tensors.v_descale, device);
  check_workspace(workspace, workspace_bytes);
  check_outputs_not_overlapping(tensors, workspace, workspace_bytes);
}

}  // namespace ops
}  // namespace thresher
