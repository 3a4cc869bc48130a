#include "formats/operands.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

constexpr std::string_view packed_suffix = "_packed";
constexpr std::string_view weight_suffix = ".weight";

[[noreturn]] void reject(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

std::string described_with_type(const LocatedTensor& located) {
  return fmt::format("{} is {}", described(located), type_and_shape(*located.tensor));
}

void check_is_matrix(const LocatedTensor& located) {
  if (located.tensor->shape.size() != 2) {
    reject(fmt::format("{}, but must be a matrix [rows, K]", described_with_type(located)));
  }
}

/// What is known of a tensor that belongs to a layer and is not read, by how its name ends.
struct Unread {
  std::string_view ending;
  std::string_view reason;
};
constexpr std::array<Unread, 9> unread{{
    {"bias", "no bias is added here"},
    {"pre_quant_scale", "it multiplies what enters the layer (AWQ), which is not done here"},
    {"scale_inv", "it scales FP8 weights, which are not read"},
    {"zero_point", "quantisation with a zero point is not read"},
    {"g_idx", "weights whose groups are reordered are not read"},
    {"weight_shape", "it belongs to weights packed as integers, which are not read"},
    {"_global_scale", "a global scale belongs to values that are named _packed"},
    {"_scale_2", "a second scale belongs to NVFP4 values that are not named _packed"},
    {"_scale", "scales belong to NVFP4 values (U8)"},
}};

std::string_view reason_against(std::string_view name) {
  for (const Unread& known : unread) {
    if (name.ends_with(known.ending)) {
      return known.reason;
    }
  }
  return "what it does to the weights is not known here";
}

}  // namespace

Tensor Operand::view() const noexcept {
  // Tensor is also the view of outputs, so its pointers are to mutable memory; operands are only read.
  auto* data = const_cast<std::byte*>(data_.data());
  if (format_ != Format::nvfp4) {
    return Tensor::contiguous(data, format_, {rows_, k_});
  }
  return Tensor::nvfp4(data, reinterpret_cast<const std::uint8_t*>(scales_.data()), rows_, k_,
                       global_scale_ ? &*global_scale_ : nullptr, scale_layout_);
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

/// Reads one operand: finds its values, refuses what it does not understand around them, then reads the parts.
class OperandReader {
 public:
  OperandReader(const Checkpoint& checkpoint, std::string_view name, ScaleLayout layout)
      : checkpoint_(checkpoint), layout_(layout) {
    find_values(name);
  }

  Operand read() const {
    const LocatedTensor values = checkpoint_.find(values_name_);
    const Dtype dtype = values.tensor->dtype;
    const bool is_plain = !packed_ && (dtype == Dtype::f16 || dtype == Dtype::bf16);
    if (!is_plain && dtype != Dtype::u8) {
      refuse_type(values);
    }
    if (!is_plain && !checkpoint_.has(scales_name())) {
      reject(fmt::format("{}, two NVFP4 values a byte, but its scales {} are missing", described_with_type(values),
                         quoted_name(scales_name())));
    }
    if (!is_plain && !packed_ && checkpoint_.has(divisor_name())) {
      refuse_ambiguous_scale(values);
    }
    refuse_other_parts(is_plain);
    return is_plain ? load_matrix(values) : read_nvfp4(values);
  }

 private:
  void find_values(std::string_view name) {
    if (name.ends_with(packed_suffix)) {
      name.remove_suffix(packed_suffix.size());
    }
    std::vector<std::string> bases{std::string(name)};
    if (!name.ends_with(weight_suffix)) {
      bases.push_back(std::string(name) + std::string(weight_suffix));
    }
    for (const std::string& base : bases) {
      for (const bool packed : {false, true}) {
        const std::string candidate = packed ? base + std::string(packed_suffix) : base;
        if (!checkpoint_.has(candidate)) {
          continue;
        }
        if (!values_name_.empty()) {
          reject(fmt::format("{} has both {} and {}, but only one of them may be there", checkpoint_.title(),
                             quoted_name(values_name_), quoted_name(candidate)));
        }
        values_name_ = candidate;
        base_ = base;
        packed_ = packed;
      }
    }
    if (base_.empty() && values_name_.empty()) {
      reject(fmt::format("{} has no tensor {}{}; it has {}", checkpoint_.title(), quoted_name(bases.front()),
                         bases.size() > 1 ? " or " + quoted_name(bases.back()) : "", checkpoint_.listing(name)));
    }
  }

  [[nodiscard]] std::string scales_name() const { return base_ + "_scale"; }
  [[nodiscard]] std::string factor_name() const { return base_ + "_scale_2"; }
  [[nodiscard]] std::string divisor_name() const { return base_ + "_global_scale"; }

  [[noreturn]] void refuse_type(const LocatedTensor& values) const {
    const Dtype dtype = values.tensor->dtype;
    const char* what = "";
    if (packed_) {
      what = ": packed integers (pack-quantized) are not read";
    } else if (dtype == Dtype::f8_e4m3 || dtype == Dtype::f8_e5m2) {
      what = ": FP8 weights are not read";
    } else if (dtype == Dtype::i8 || dtype == Dtype::i32) {
      what = ": integer weights are not read";
    }
    reject(fmt::format("{}, but an operand must be {}{}", described_with_type(values),
                       packed_ ? "NVFP4 (U8 with scales)" : "F16, BF16 or NVFP4 (U8 with scales)", what));
  }

  [[noreturn]] void refuse_ambiguous_scale(const LocatedTensor& values) const {
    reject(
        fmt::format("{} has {} beside {}, which may multiply or divide: compressed-tensors divides by it, and names "
                    "the values {}; one that multiplies is named {}: rename either",
                    checkpoint_.title(), quoted_name(divisor_name()), quoted_name(values.tensor->name),
                    quoted_name(base_ + std::string(packed_suffix)), quoted_name(factor_name())));
  }

  /// A part of the layer that is not read would change what the weights mean, in silence.
  void refuse_other_parts(bool is_plain) const {
    std::vector<std::string> known{values_name_};
    if (!is_plain) {
      known.push_back(scales_name());
      known.push_back(packed_ ? divisor_name() : factor_name());
    }
    for (const std::string& part : parts()) {
      if (std::find(known.begin(), known.end(), part) == known.end()) {
        reject(fmt::format("{} has {} beside {}: {}", checkpoint_.title(), quoted_name(part), quoted_name(values_name_),
                           reason_against(part)));
      }
    }
  }

  /// The layer's tensors but those that scale its input. Of X.weight they begin with X, of a tensor without a layer
  /// they are named after it.
  [[nodiscard]] std::vector<std::string> parts() const {
    std::vector<std::string> parts;
    if (base_.ends_with(weight_suffix)) {
      const std::string layer = base_.substr(0, base_.size() - weight_suffix.size() + 1);
      for (std::string& part : checkpoint_.names_from(layer)) {
        if (part != layer + "input_scale" && part != layer + "input_global_scale") {
          parts.push_back(std::move(part));
        }
      }
      return parts;
    }
    for (const char* ending : {"_scale", "_scale_2", "_global_scale", "_scale_inv", "_zero_point", "_g_idx", "_bias"}) {
      if (checkpoint_.has(base_ + ending)) {
        parts.push_back(base_ + ending);
      }
    }
    if (base_ == weight_suffix.substr(1)) {
      for (const char* part : {"bias", "pre_quant_scale"}) {
        if (checkpoint_.has(part)) {
          parts.emplace_back(part);
        }
      }
    }
    return parts;
  }

  Operand read_nvfp4(const LocatedTensor& values) const {
    Operand operand;
    operand.format_ = Format::nvfp4;
    operand.k_ = checked_k(values);
    operand.rows_ = values.tensor->shape[0];
    operand.source_ = described(values);
    operand.scale_layout_ = layout_;
    operand.scales_ = read_scales(operand.rows_, operand.k_);
    operand.global_scale_ = read_global_scale(values);
    operand.data_ = values.read();
    return operand;
  }

  static std::int64_t checked_k(const LocatedTensor& values) {
    check_is_matrix(values);
    const std::int64_t k = size_product(values.tensor->shape[1], 2);
    if (k % scale_block != 0) {  // too_large is no multiple
      reject(fmt::format("{}, two NVFP4 values a byte, but K = 2·{} must be a multiple of {}",
                         described_with_type(values), values.tensor->shape[1], scale_block));
    }
    return k;
  }

  static bool has_scale_shape(const StoredTensor& scales, std::int64_t rows, std::int64_t k, ScaleLayout layout) {
    const bool right_size = scales.bytes() == scale_bytes(rows, k, layout);
    const bool is_matrix = scales.shape.size() == 2 && scales.shape[0] == rows && scales.shape[1] == k / scale_block;
    return right_size && (layout == ScaleLayout::blocked || scales.shape.size() == 1 || is_matrix);
  }

  /// What else scales that do not fit might be.
  [[nodiscard]] std::string guess(const StoredTensor& scales, std::int64_t rows, std::int64_t k) const {
    const auto other = layout_ == ScaleLayout::row_major ? ScaleLayout::blocked : ScaleLayout::row_major;
    if (scales.dtype == Dtype::f8_e4m3 && has_scale_shape(scales, rows, k, other)) {
      return fmt::format("; its size fits the {} scale layout",
                         other == ScaleLayout::blocked ? "blocked" : "row-major");
    }
    const bool is_exponents = scales.dtype == Dtype::u8 || scales.dtype == Dtype::f8_e8m0;
    return is_exponents && scales.bytes() == static_cast<std::uint64_t>(size_product(rows, k / 32))
               ? "; one exponent for 32 values is MXFP4, which is not read"
               : "";
  }

  std::vector<std::byte> read_scales(std::int64_t rows, std::int64_t k) const {
    const LocatedTensor scales = checkpoint_.find(scales_name());
    if (scales.tensor->dtype != Dtype::f8_e4m3 || !has_scale_shape(*scales.tensor, rows, k, layout_)) {
      const std::string expected = layout_ == ScaleLayout::row_major
                                       ? fmt::format("[{}, {}]", rows, k / scale_block)
                                       : fmt::format("{} in the blocked layout", scale_bytes(rows, k, layout_));
      reject(fmt::format("{}, but the scales must be F8_E4M3 {}{}", described_with_type(scales), expected,
                         guess(*scales.tensor, rows, k)));
    }
    std::vector<std::byte> bytes = scales.read();
    if (layout_ == ScaleLayout::blocked) {
      check_padding(scales, bytes, rows, k);
    }
    return bytes;
  }

  /// Blocked padding must be zero: anything else shows that the scales are in another layout.
  static void check_padding(const LocatedTensor& scales, std::span<const std::byte> bytes, std::int64_t rows,
                            std::int64_t k) {
    try {
      const auto* codes = reinterpret_cast<const std::uint8_t*>(bytes.data());
      (void)convert_scales({codes, bytes.size()}, rows, k, ScaleLayout::blocked, ScaleLayout::row_major);
    } catch (const Error& error) {
      reject(fmt::format("{}: {}", described(scales), error.what()));
    }
  }

  [[nodiscard]] std::optional<float> read_global_scale(const LocatedTensor& values) const {
    const std::string name = packed_ ? divisor_name() : factor_name();
    if (!checkpoint_.has(name)) {
      if (packed_) {
        reject(fmt::format("{}, but its global scale {} is missing", described_with_type(values), quoted_name(name)));
      }
      return std::nullopt;
    }
    const LocatedTensor located = checkpoint_.find(name);
    float value = 0.0F;
    if (located.tensor->dtype != Dtype::f32 || located.tensor->bytes() != sizeof(value)) {
      reject(fmt::format("{}, but a global scale must be one F32", described_with_type(located)));
    }
    located.file->read(*located.tensor, 0, std::as_writable_bytes(std::span(&value, 1)));
    if (!packed_) {
      return value;
    }
    const float factor = 1.0F / value;
    if (!(value > 0.0F) || !std::isfinite(value) || !std::isfinite(factor)) {
      reject(
          fmt::format("{} is {}, but the values are divided by it: it must be positive and finite, and so must be "
                      "its reciprocal",
                      described(located), value));
    }
    return factor;
  }

  const Checkpoint& checkpoint_;
  ScaleLayout layout_;
  std::string values_name_;
  std::string base_;  ///< values_name_ without "_packed": what scales are named after
  bool packed_ = false;
};

/// Every `step`-th row of half of `fused`, from `first` on.
Operand rows_of(const Operand& fused, std::string_view which, std::int64_t first, std::int64_t step) {
  Operand half;
  half.format_ = fused.format_;
  half.rows_ = fused.rows_ / 2;
  half.k_ = fused.k_;
  half.source_ = fmt::format("{} of {}", which, fused.source_);
  half.global_scale_ = fused.global_scale_;
  const auto take = [&](std::span<const std::byte> from, std::vector<std::byte>& to) {
    const std::size_t row_bytes = fused.rows_ == 0 ? 0 : from.size() / static_cast<std::size_t>(fused.rows_);
    to.reserve(from.size() / 2);
    for (std::int64_t row = 0; row < (row_bytes == 0 ? 0 : half.rows_); ++row) {
      const auto bytes = from.subspan(static_cast<std::size_t>(first + row * step) * row_bytes, row_bytes);
      to.insert(to.end(), bytes.begin(), bytes.end());
    }
  };
  take(fused.data_, half.data_);
  if (fused.format_ == Format::nvfp4) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(fused.scales_.data());
    const std::vector<std::uint8_t> scales = convert_scales({codes, fused.scales_.size()}, fused.rows_, fused.k_,
                                                            fused.scale_layout_, ScaleLayout::row_major);
    take(std::as_bytes(std::span(scales)), half.scales_);
  }
  return half;
}

Operand load_operand(const Checkpoint& checkpoint, std::string_view name, ScaleLayout scale_layout) {
  return OperandReader(checkpoint, name, scale_layout).read();
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
