#include "formats/stacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/operands.hpp"
#include "formats/reject.hpp"
#include "formats/scales.hpp"
#include "formats/sound_scales.hpp"
#include "formats/weight_parts.hpp"

namespace thresher::formats {
namespace {

LocatedTensor found(const Checkpoint& checkpoint, std::string_view name) {
  if (!checkpoint.has(name)) {
    reject(
        fmt::format("{} has no tensor {}; it has {}", checkpoint.title(), quoted_name(name), checkpoint.listing(name)));
  }
  return checkpoint.find(name);
}

std::optional<Format> format_of(Dtype dtype) {
  constexpr std::array<std::pair<Dtype, Format>, 4> formats{{{Dtype::f16, Format::fp16},
                                                             {Dtype::bf16, Format::bf16},
                                                             {Dtype::f32, Format::fp32},
                                                             {Dtype::i32, Format::int32}}};
  const auto* known =
      std::find_if(formats.begin(), formats.end(), [&](const auto& pair) { return pair.first == dtype; });
  return known == formats.end() ? std::nullopt : std::optional(known->second);
}

bool has_dimensions(const LocatedTensor& located) {
  return !located.tensor->shape.empty() && std::ssize(located.tensor->shape) <= max_rank;
}

/// I64 converted to 32 bits.
std::vector<std::byte> narrowed(const LocatedTensor& located, WideIntegers beyond) {
  const std::vector<std::byte> wide = located.read();
  std::vector<std::byte> narrow(wide.size() / 2);
  for (std::size_t i = 0; i < wide.size() / sizeof(std::int64_t); ++i) {
    std::int64_t value;
    std::memcpy(&value, &wide[i * sizeof value], sizeof value);
    auto kept = static_cast<std::int32_t>(value);
    if (kept != value) {
      if (beyond == WideIntegers::refused) {
        reject(fmt::format("{} has {} at {}, but its values must be within 32 bits", described(located), value,
                           place(i, located.tensor->shape)));
      }
      kept = -1;
    }
    std::memcpy(&narrow[i * sizeof kept], &kept, sizeof kept);
  }
  return narrow;
}

}  // namespace

Stack numbers_of(const std::vector<float>& values) {
  Stack stack;
  stack.format_ = Format::fp32;
  stack.shape_ = {std::ssize(values)};
  stack.data_.resize(values.size() * sizeof(float));
  std::memcpy(stack.data_.data(), values.data(), stack.data_.size());
  return stack;
}

Dtype stored_type(Format output) noexcept {
  switch (output) {
    case Format::fp16: return Dtype::f16;
    case Format::bf16: return Dtype::bf16;
    case Format::nvfp4: return Dtype::u8;
    case Format::fp8_tensor:
    case Format::fp8_row:
    case Format::fp8_block: return Dtype::f8_e4m3;
    default: return Dtype::f32;
  }
}

Tensor Stack::view() const noexcept {
  auto* data = const_cast<std::byte*>(data_.data());  // Tensor is also the view of outputs
  Tensor tensor = Tensor::contiguous(data, format_, shape_);
  tensor.scales.data = scales_.empty() ? nullptr : scales_.data();
  tensor.scales.layout = scale_layout_;
  tensor.describe_scales(role_);
  tensor.global_scale = global_scales_.empty() ? nullptr : global_scales_.data();
  return tensor;
}

void Stack::keep_every_second_global_scale(std::size_t first) {
  for (std::size_t i = 0; 2 * i < global_scales_.size(); ++i) {
    global_scales_[i] = global_scales_[2 * i + first];
  }
  global_scales_.resize(global_scales_.size() / 2);
}

void Stack::transpose() {
  if (format_ != Format::fp16 && format_ != Format::bf16) {
    reject(fmt::format("{} is {} with rows and columns exchanged, expected F16 or BF16", source_, name(format_)));
  }
  constexpr std::size_t tile = 64;  // columns that stay in a cache
  const auto rows = static_cast<std::size_t>(shape_[1]);
  const auto columns = static_cast<std::size_t>(shape_[2]);
  std::vector<std::byte> exchanged(data_.size());
  const auto copy = [&](std::size_t to, std::size_t from) { std::memcpy(&exchanged[2 * to], &data_[2 * from], 2); };
  for (std::size_t matrix = 0; matrix < data_.size() / 2; matrix += rows * columns) {
    for (std::size_t first = 0; first < columns; first += tile) {
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = first; column < std::min(first + tile, columns); ++column) {
          copy(matrix + column * rows + row, matrix + row * columns + column);
        }
      }
    }
  }
  data_ = std::move(exchanged);
  std::swap(shape_[1], shape_[2]);
}

void Stack::hold(HeldMxfp4 held) {
  format_ = held.format;
  data_ = std::move(held.data);
  scales_ = std::move(held.scales);
  global_scales_ = std::move(held.global_scales);
  mxfp4_span_ = held.span;
}

void Stack::widen() {
  data_ = widened_mxfp4(data_, scales_, global_scales_);
  format_ = Format::bf16;
  scales_.clear();
  global_scales_.clear();
}

Stack load_stack(const Checkpoint& checkpoint, std::string_view name, StackKind kind, ScaleLayout layout,
                 std::size_t scales_of_a_matrix) {
  const WeightParts parts(checkpoint, name);
  const LocatedTensor values = parts.values();
  Stack stack;
  stack.source_ = described(values);
  stack.shape_ = values.tensor->shape;
  const bool is_stack = kind == StackKind::slots || kind == StackKind::weights;
  const bool is_weights = kind == StackKind::weights || kind == StackKind::matrix;
  if (stack.shape_.size() != (is_stack ? 3U : 2U)) {
    reject(fmt::format("{}, but must have {} dimensions: {}", described_with_type(values), is_stack ? 3 : 2,
                       is_stack ? "[experts, rows, K]" : "[rows, K]"));
  }
  const Stored stored = parts.check(/*adds_bias=*/is_weights);
  stack.role_ = is_weights ? OperandRole::weights : OperandRole::tokens;
  if (stored == Stored::plain) {
    stack.format_ = *format_of(values.tensor->dtype);
    stack.data_ = values.read();
    return stack;
  }
  if (stored == Stored::fp8) {
    Fp8Scales scales = parts.fp8_scales(stack.shape_, stack.role_, layout);
    stack.format_ = scales.format;
    stack.scale_layout_ = may_lie(layout, scales.format, stack.role_) ? layout : ScaleLayout::row_major;
    stack.scales_ = std::move(scales.scales);
    stack.global_scales_ = std::move(scales.global_scales);
    stack.data_ = values.read();
    return stack;
  }
  stack.shape_.back() = unpacked_k(values, stored);
  const std::size_t matrices = is_stack ? static_cast<std::size_t>(stack.shape_.front()) : 1;
  if (stored == Stored::mxfp4) {
    const std::vector<std::byte> exponents = parts.exponents(stack.shape_, layout);
    stack.hold(hold_mxfp4(values.read(), exponents, matrices, parts.scales_title()));
    return stack;
  }
  stack.format_ = Format::nvfp4;
  stack.scale_layout_ = layout;
  stack.scales_ = parts.scales(stack.shape_, layout);
  stack.global_scales_ = parts.global_scales(matrices * scales_of_a_matrix);
  stack.data_ = values.read();
  return stack;
}

Stack load_experts(const Checkpoint& checkpoint, std::span<const std::string> names, ScaleLayout layout) {
  Stack stack;
  for (const std::string& name : names) {
    Operand one = load_operand(checkpoint, name, layout);
    if (!stack.shape_.empty() && one.is_mxfp4() != stack.mxfp4_span_.has_value()) {
      reject(fmt::format("{} is {}MXFP4, expected all experts in one format like {}", one.source(),
                         one.is_mxfp4() ? "" : "not ", stack.source_));
    }
    hold_alike(stack, one);
    const Tensor matrix = one.view();
    if (stack.shape_.empty()) {
      stack.format_ = one.format();
      stack.shape_ = {std::ssize(names), one.rows(), one.k()};
      stack.source_ = one.source();
      stack.scale_layout_ = matrix.scales.layout;
    } else if (one.format() != stack.format_ || one.rows() != stack.shape_[1] || one.k() != stack.shape_[2]) {
      reject(fmt::format("{} is {} [{}, {}], expected {} [{}, {}] like {}", one.source(), thresher::name(one.format()),
                         one.rows(), one.k(), thresher::name(stack.format_), stack.shape_[1], stack.shape_[2],
                         stack.source_));
    }
    const auto append = [](std::vector<std::byte>& to, const void* from, std::size_t bytes) {
      const auto* const first = static_cast<const std::byte*>(from);
      to.insert(to.end(), first, first + bytes);
    };
    append(stack.data_, matrix.data, static_cast<std::size_t>(matrix.elements() * bits(matrix.format) / 8));
    append(stack.scales_, matrix.scales.data, scale_bytes(matrix));
    if (one.is_mxfp4()) {
      stack.mxfp4_span_ = std::max(stack.mxfp4_span_.value_or(0), one.mxfp4_span());
    }
    // NVFP4 without a global scale has 1; FP8 with one scale always has it.
    stack.global_scales_.push_back(matrix.global_scale == nullptr ? 1.0F : *matrix.global_scale);
  }
  if (stack.format_ != Format::nvfp4 && stack.format_ != Format::fp8_tensor) {
    stack.global_scales_.clear();
  }
  return stack;
}

Stack load_numbers(const Checkpoint& checkpoint, std::string_view name) {
  const LocatedTensor values = found(checkpoint, name);
  const std::optional<Format> format = format_of(values.tensor->dtype);
  if (!format || *format == Format::int32 || !has_dimensions(values)) {
    reject(
        fmt::format("{}, but must be F32, F16 or BF16 of 1 to {} dimensions", described_with_type(values), max_rank));
  }
  refuse_parts_beside(checkpoint, name);
  Stack stack;
  stack.source_ = described(values);
  stack.shape_ = values.tensor->shape;
  stack.format_ = *format;
  stack.data_ = values.read();
  return stack;
}

Stack load_integers(const Checkpoint& checkpoint, std::string_view name, WideIntegers beyond) {
  const LocatedTensor values = found(checkpoint, name);
  const bool is_wide = values.tensor->dtype == Dtype::i64;
  if ((values.tensor->dtype != Dtype::i32 && !is_wide) || !has_dimensions(values)) {
    reject(fmt::format("{}, but must be I32 or I64 of 1 to {} dimensions", described_with_type(values), max_rank));
  }
  refuse_parts_beside(checkpoint, name);
  Stack stack;
  stack.source_ = described(values);
  stack.shape_ = values.tensor->shape;
  stack.format_ = Format::int32;
  stack.data_ = is_wide ? narrowed(values, beyond) : values.read();
  return stack;
}

}  // namespace thresher::formats
