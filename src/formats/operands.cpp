#include "formats/operands.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/reject.hpp"
#include "formats/scales.hpp"
#include "formats/weight_parts.hpp"

namespace thresher::formats {
namespace {

void check_is_matrix(const LocatedTensor& located) {
  if (located.tensor->shape.size() != 2) {
    reject(fmt::format("{}, but must be a matrix [rows, K]", described_with_type(located)));
  }
}

}  // namespace

Tensor Operand::view() const noexcept {
  // Tensor is also the view of outputs, so its pointers are to mutable memory; operands are only read.
  auto* data = const_cast<std::byte*>(data_.data());
  Tensor tensor = Tensor::contiguous(data, format_, {rows_, k_});
  tensor.scales.data = scales_.empty() ? nullptr : scales_.data();
  tensor.scales.layout = scale_layout_;
  tensor.describe_scales(role_);
  tensor.global_scale = global_scale_ ? &*global_scale_ : nullptr;
  return tensor;
}

void Operand::widen() {
  data_ = widened_mxfp4(data_, scales_, std::span(&*global_scale_, 1));
  format_ = Format::bf16;
  scales_.clear();
  global_scale_.reset();
}

Operand load_matrix(const LocatedTensor& located) {
  constexpr std::array<std::pair<Dtype, Format>, 3> formats{
      {{Dtype::f16, Format::fp16}, {Dtype::bf16, Format::bf16}, {Dtype::f32, Format::fp32}}};
  check_is_matrix(located);
  const auto* found = std::find_if(formats.begin(), formats.end(),
                                   [&](const auto& pair) { return pair.first == located.tensor->dtype; });
  if (found == formats.end()) {
    reject(fmt::format("{}, but must be F16, BF16 or F32", described_with_type(located)));
  }
  Operand operand;
  operand.format_ = found->second;
  operand.rows_ = located.tensor->shape[0];
  operand.k_ = located.tensor->shape[1];
  operand.source_ = described(located);
  operand.data_ = located.read();
  return operand;
}

/// Reads one operand from its parts.
class OperandReader {
 public:
  OperandReader(const Checkpoint& checkpoint, std::string_view name, ScaleLayout layout, OperandRole role)
      : parts_(checkpoint, name), layout_(layout), role_(role) {}

  [[nodiscard]] Operand read() const {
    switch (const Stored stored = parts_.check(/*adds_bias=*/false)) {
      case Stored::plain: return load_matrix(parts_.values());
      case Stored::fp8: return read_fp8(parts_.values());
      default: return read_packed(parts_.values(), stored);
    }
  }

 private:
  Operand read_fp8(const LocatedTensor& values) const {
    check_is_matrix(values);
    Fp8Scales scales = parts_.fp8_scales(values.tensor->shape, role_, layout_);
    Operand operand;
    operand.format_ = scales.format;
    operand.role_ = role_;
    operand.rows_ = values.tensor->shape[0];
    operand.k_ = values.tensor->shape[1];
    operand.source_ = described(values);
    operand.scale_layout_ = may_lie(layout_, scales.format, role_) ? layout_ : ScaleLayout::row_major;
    operand.scales_ = std::move(scales.scales);
    if (!scales.global_scales.empty()) {
      operand.global_scale_ = scales.global_scales.front();
    }
    operand.data_ = values.read();
    return operand;
  }

  /// Two values per byte.
  Operand read_packed(const LocatedTensor& values, Stored stored) const {
    check_is_matrix(values);
    Operand operand;
    operand.k_ = unpacked_k(values, stored);
    operand.rows_ = values.tensor->shape[0];
    operand.source_ = described(values);
    if (stored == Stored::mxfp4) {
      const std::vector<std::byte> exponents = parts_.exponents({operand.rows_, operand.k_}, layout_);
      HeldMxfp4 held = hold_mxfp4(values.read(), exponents, 1, parts_.scales_title());
      operand.format_ = held.format;
      operand.data_ = std::move(held.data);
      operand.scales_ = std::move(held.scales);
      operand.mxfp4_span_ = held.span;
      if (!held.global_scales.empty()) {
        operand.global_scale_ = held.global_scales.front();
      }
      return operand;
    }
    operand.format_ = Format::nvfp4;
    operand.scale_layout_ = layout_;
    operand.scales_ = parts_.scales({operand.rows_, operand.k_}, layout_);
    if (const std::vector<float> factors = parts_.global_scales(1); !factors.empty()) {
      operand.global_scale_ = factors.front();
    }
    operand.data_ = values.read();
    return operand;
  }

  WeightParts parts_;
  ScaleLayout layout_;
  OperandRole role_;
};

/// Every `step`-th row of half of `fused`, from `first` on.
Operand rows_of(const Operand& fused, std::string_view which, std::int64_t first, std::int64_t step) {
  const int shared = format_traits(fused.format_).weight_rows_per_scale;
  if (shared > 1 && (step != 1 || fused.rows_ / 2 % shared != 0)) {
    reject(fmt::format("{} is {} with gate and up in {} rows each, but {} rows share a scale: give two tensors",
                       fused.source_, name(fused.format_), fused.rows_ / 2, shared));
  }
  Operand half;
  half.format_ = fused.format_;
  half.rows_ = fused.rows_ / 2;
  half.k_ = fused.k_;
  half.source_ = fmt::format("{} of {}", which, fused.source_);
  half.global_scale_ = fused.global_scale_;
  half.mxfp4_span_ = fused.mxfp4_span_;
  const auto take = [&](std::span<const std::byte> from, std::vector<std::byte>& to) {
    const std::size_t row_bytes = fused.rows_ == 0 ? 0 : from.size() / static_cast<std::size_t>(fused.rows_);
    to.reserve(from.size() / 2);
    for (std::int64_t row = 0; row < (row_bytes == 0 ? 0 : half.rows_); ++row) {
      const auto bytes = from.subspan(static_cast<std::size_t>(first + row * step) * row_bytes, row_bytes);
      to.insert(to.end(), bytes.begin(), bytes.end());
    }
  };
  take(fused.data_, half.data_);
  if (shared > 1) {
    const std::size_t bytes = fused.scales_.size() / 2;
    const auto begin = fused.scales_.begin() + static_cast<std::ptrdiff_t>(first == 0 ? 0 : bytes);
    half.scales_.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
  } else if (fused.scale_layout_ == ScaleLayout::blocked) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(fused.scales_.data());
    const std::vector<std::uint8_t> scales = convert_scales({codes, fused.scales_.size()}, fused.rows_, fused.k_,
                                                            fused.scale_layout_, ScaleLayout::row_major);
    take(std::as_bytes(std::span(scales)), half.scales_);
  } else {
    take(fused.scales_, half.scales_);
  }
  return half;
}

Operand load_operand(const Checkpoint& checkpoint, std::string_view name, ScaleLayout scale_layout, OperandRole role) {
  return OperandReader(checkpoint, name, scale_layout, role).read();
}

GateUp load_gate_up(const Checkpoint& checkpoint, std::string_view name, GateUpOrder order, ScaleLayout scale_layout) {
  const Operand fused = load_operand(checkpoint, name, scale_layout);
  if (fused.rows() % 2 != 0) {
    reject(fmt::format("{} is [{}, {}], but gate and up in one tensor need an even number of rows", fused.source(),
                       fused.rows(), fused.k()));
  }
  const std::int64_t half = fused.rows() / 2;
  const std::int64_t step = order == GateUpOrder::interleaved ? 2 : 1;
  const std::int64_t second = order == GateUpOrder::interleaved ? 1 : half;
  const bool gate_first = order != GateUpOrder::up_first;
  return {rows_of(fused, "gate", gate_first ? 0 : second, step), rows_of(fused, "up", gate_first ? second : 0, step)};
}

}  // namespace thresher::formats
