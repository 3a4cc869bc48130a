#include "formats/weight_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/mxfp4.hpp"
#include "formats/numbers.hpp"
#include "formats/reject.hpp"
#include "formats/scales.hpp"
#include "formats/sound_scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

constexpr std::string_view packed_suffix = "_packed";
constexpr std::string_view weight_suffix = ".weight";

/// A description of a tensor that belongs to a layer but is not read, by the ending of its name.
struct Unread {
  std::string_view ending;
  std::string_view reason;
};
constexpr std::array<Unread, 9> unread{{
    {"bias", "no bias is added here"},
    {"pre_quant_scale", "it multiplies what enters the layer (AWQ), which is not done here"},
    {"scale_inv", "it scales FP8 weights (F8_E4M3)"},
    {"zero_point", "quantization with a zero point is not read"},
    {"g_idx", "weights whose groups are reordered are not read"},
    {"weight_shape", "it belongs to weights packed as integers, which are not read"},
    {"_global_scale", "a global scale belongs to values that are named _packed"},
    {"_scale_2", "a second scale belongs to NVFP4 values that are not named _packed"},
    {"_scale", "scales belong to NVFP4 (U8) and FP8 values (F8_E4M3)"},
}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

std::string_view reason_against(std::string_view part, bool adds_bias = false) {
  const std::string name = lower_case(part);
  if (adds_bias && name.ends_with("bias")) {
    return "a bias of X or X.weight is X.bias or X_bias, and no other";
  }
  for (const Unread& known : unread) {
    if (name.ends_with(known.ending)) {
      return known.reason;
    }
  }
  return "what it does to the weights is not known here";
}

[[noreturn]] void refuse_part(const Checkpoint& checkpoint, std::string_view part, std::string_view values,
                              std::string_view reason) {
  reject(fmt::format("{} has {} beside {}: {}", checkpoint.title(), quoted_name(part), quoted_name(values), reason));
}

/// X of X.weight, otherwise the name itself; empty for "weight".
std::string_view layer_of(std::string_view values) {
  if (values == weight_suffix.substr(1)) {
    return "";
  }
  return values.ends_with(weight_suffix) ? values.substr(0, values.size() - weight_suffix.size()) : values;
}

/// For a tensor named just "weight", whose layer has no name.
bool belongs_to_nameless(std::string_view name) {
  constexpr std::array<std::string_view, 6> parts{"bias", "scale", "scales", "pre_quant_scale", "zero_point", "g_idx"};
  return name.starts_with("weight_") || std::find(parts.begin(), parts.end(), name) != parts.end();
}

/// Scales of the layer's input, which is taken as it is.
bool scales_input(std::string_view ending) { return ending == "input_scale" || ending == "input_global_scale"; }

/// Values [rows, K] or [matrices, rows, K], and their scales.
struct Extents {
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::vector<std::int64_t> scales_shape;  ///< row-major

  explicit Extents(const std::vector<std::int64_t>& shape)
      : matrices(shape.size() == 3 ? shape.front() : 1),
        rows(shape[shape.size() - 2]),
        k(shape.back()),
        scales_shape(shape) {
    scales_shape.back() /= scale_block;
  }

  [[nodiscard]] std::uint64_t scales_bytes(ScaleLayout layout) const {
    const auto of_one = static_cast<std::int64_t>(scale_bytes(rows, k, layout));
    return static_cast<std::uint64_t>(size_product(matrices, of_one));
  }
  [[nodiscard]] bool fit(const StoredTensor& scales, ScaleLayout layout) const {
    return scales.bytes() == scales_bytes(layout) &&
           (layout == ScaleLayout::blocked || scales.shape.size() == 1 || scales.shape == scales_shape);
  }
  /// Another layout that scales of the wrong size might have.
  [[nodiscard]] std::string guess(const StoredTensor& scales, ScaleLayout layout) const {
    const auto other = layout == ScaleLayout::row_major ? ScaleLayout::blocked : ScaleLayout::row_major;
    return scales.dtype == Dtype::f8_e4m3 && fit(scales, other)
               ? fmt::format("; its size fits the {} scale layout",
                             other == ScaleLayout::blocked ? "blocked" : "row-major")
               : "";
  }
};

/// Blocked padding must be zero: anything else shows that the scales are in another layout.
void check_padding(const LocatedTensor& scales, std::span<const std::byte> bytes, const Extents& of) {
  const std::size_t of_one = of.matrices == 0 ? 0 : bytes.size() / static_cast<std::size_t>(of.matrices);
  for (std::size_t at = 0; at < bytes.size(); at += of_one) {
    try {
      const auto* codes = reinterpret_cast<const std::uint8_t*>(bytes.data() + at);
      (void)convert_scales({codes, of_one}, of.rows, of.k, ScaleLayout::blocked, ScaleLayout::row_major);
    } catch (const Error& error) {
      reject(fmt::format("{}: {}", described(scales), error.what()));
    }
  }
}

}  // namespace

/// Words that follow the tensor's own name: "b1_zero_point", "b1_pre_quant_scale".
bool names_part(std::string_view ending) {
  constexpr std::array<std::string_view, 21> words{
      "bias", "scale", "scales", "scaling", "descale", "zero",  "zeros", "qzeros",   "zp",     "point", "idx",
      "perm", "order", "shape",  "amax",    "blocks",  "shift", "lora",  "rotation", "rotate", "smooth"};
  const std::string lower = lower_case(ending);
  ending = lower;
  while (!ending.empty()) {
    const std::size_t end = std::min(ending.find('_'), ending.size());
    if (std::find(words.begin(), words.end(), ending.substr(0, end)) != words.end()) {
      return true;
    }
    ending.remove_prefix(std::min(end + 1, ending.size()));
  }
  return false;
}

std::string described_with_type(const LocatedTensor& located) {
  return fmt::format("{} is {}", described(located), type_and_shape(*located.tensor));
}

WeightParts::WeightParts(const Checkpoint& checkpoint, std::string_view name) : checkpoint_(checkpoint) {
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
      is_packed_ = packed;
    }
  }
  if (base_.empty() && values_name_.empty()) {
    reject(fmt::format("{} has no tensor {}{}; it has {}", checkpoint_.title(), quoted_name(bases.front()),
                       bases.size() > 1 ? " or " + quoted_name(bases.back()) : "", checkpoint_.listing(name)));
  }
}

std::vector<std::string> parts_beside(const Checkpoint& checkpoint, std::string_view values) {
  const std::string_view layer = layer_of(values);
  std::vector<std::string> parts;
  for (std::string& name : checkpoint.names_from(layer)) {
    const std::string_view rest = std::string_view(name).substr(layer.size());
    const std::string_view ending = rest.substr(std::min<std::size_t>(1, rest.size()));
    const bool is_part = layer.empty()           ? belongs_to_nameless(rest)
                         : rest.starts_with('.') ? !scales_input(ending)
                                                 : rest.starts_with('_') && names_part(ending) && !scales_input(ending);
    if (is_part && name != values) {
      parts.push_back(std::move(name));
    }
  }
  return parts;
}

void refuse_parts_beside(const Checkpoint& checkpoint, std::string_view values, std::span<const std::string> used) {
  for (const std::string& part : parts_beside(checkpoint, values)) {
    if (std::find(used.begin(), used.end(), part) == used.end()) {
      refuse_part(checkpoint, part, values, reason_against(part));
    }
  }
}

std::string WeightParts::scales_name() const {
  const std::string dotted = std::string(layer_of(base_)) + ".scale";
  return checkpoint_.has(base_ + "_scale") || !checkpoint_.has(dotted) ? base_ + "_scale" : dotted;
}

std::string WeightParts::bias_name() const {
  const std::string layer(layer_of(base_));
  if (layer.empty()) {
    return "bias";
  }
  const std::string dotted = layer + ".bias";
  const std::string joined = layer + "_bias";
  if (checkpoint_.has(dotted) && checkpoint_.has(joined)) {
    reject(fmt::format("{} has both {} and {}, but only one of them may be there", checkpoint_.title(),
                       quoted_name(dotted), quoted_name(joined)));
  }
  return checkpoint_.has(joined) ? joined : dotted;
}

Stored WeightParts::check(bool adds_bias) const {
  const Dtype dtype = values().tensor->dtype;
  const bool is_plain = !is_packed_ && (dtype == Dtype::f16 || dtype == Dtype::bf16);
  const bool is_fp8 = !is_packed_ && dtype == Dtype::f8_e4m3;
  const bool is_mxfp4_of_deepseek = !is_packed_ && dtype == Dtype::i8 && has_exponents() &&
                                    checkpoint_.find(scales_name()).tensor->dtype == Dtype::f8_e8m0;
  if (!is_plain && !is_fp8 && !is_mxfp4_of_deepseek && dtype != Dtype::u8) {
    refuse_type();
  }
  const Stored stored = is_plain          ? Stored::plain
                        : is_fp8          ? Stored::fp8
                        : has_exponents() ? Stored::mxfp4
                                          : Stored::nvfp4;
  check_scales(stored);
  refuse_other_parts(stored, adds_bias);
  return stored;
}

bool WeightParts::has_exponents() const {
  if (!checkpoint_.has(scales_name())) {
    return false;
  }
  const Dtype dtype = checkpoint_.find(scales_name()).tensor->dtype;
  return dtype == Dtype::u8 || dtype == Dtype::f8_e8m0;
}

void WeightParts::check_scales(Stored stored) const {
  const bool has_scales = checkpoint_.has(scales_name());
  if (stored == Stored::fp8 && has_scales == checkpoint_.has(inverse_name())) {
    const std::vector<std::string> others = parts_beside(checkpoint_, base_);
    reject(fmt::format("{}, {} its scales {} {} {}{}{}", described_with_type(values()), has_scales ? "and" : "but",
                       quoted_name(scales_name()), has_scales ? "and" : "or", quoted_name(inverse_name()),
                       has_scales ? " are both there, of which one multiplies" : " are missing",
                       has_scales || others.empty() ? "" : "; beside it is " + quoted_name(others.front())));
  }
  if (stored == Stored::nvfp4 && !has_scales) {
    reject(fmt::format("{}, two NVFP4 values a byte, but its scales {} are missing", described_with_type(values()),
                       quoted_name(scales_name())));
  }
  if (stored == Stored::nvfp4 && !is_packed_ && checkpoint_.has(divisor_name())) {
    refuse_ambiguous_scale();
  }
}

void WeightParts::refuse_type() const {
  const Dtype dtype = values().tensor->dtype;
  const char* what = "";
  if (is_packed_) {
    what = ": packed integers (pack-quantized) are not read";
  } else if (dtype == Dtype::f8_e5m2) {
    what = ": of FP8 weights those in F8_E4M3 are read";
  } else if (dtype == Dtype::i8 || dtype == Dtype::i32) {
    what = ": integer weights are not read";
  }
  reject(fmt::format("{}, but an operand must be {}{}", described_with_type(values()),
                     is_packed_ ? "NVFP4 or MXFP4 (U8 with scales)"
                                : "F16, BF16, FP8 (F8_E4M3 with scales), NVFP4 or MXFP4 (U8 with scales)",
                     what));
}

void WeightParts::refuse_ambiguous_scale() const {
  reject(
      fmt::format("{} has {} beside {}, which may multiply or divide: compressed-tensors divides by it, and names "
                  "the values {}; one that multiplies is named {}: rename either",
                  checkpoint_.title(), quoted_name(divisor_name()), quoted_name(values_name_),
                  quoted_name(base_ + std::string(packed_suffix)), quoted_name(factor_name())));
}

/// An unread part of the layer would silently change the meaning of the weights.
void WeightParts::refuse_other_parts(Stored stored, bool adds_bias) const {
  std::vector<std::string> known{values_name_};
  if (stored != Stored::plain) {
    known.push_back(scales_name());
  }
  if (stored == Stored::fp8 || stored == Stored::nvfp4) {
    known.push_back(stored == Stored::fp8 ? inverse_name() : global_scale_name());
  }
  if (adds_bias) {
    known.push_back(bias_name());
  }
  for (const std::string& part : parts_beside(checkpoint_, base_)) {
    if (std::find(known.begin(), known.end(), part) == known.end()) {
      const bool scales_mxfp4 =
          stored == Stored::mxfp4 && (part == factor_name() || part == divisor_name() || part == inverse_name());
      refuse_part(
          checkpoint_, part, values_name_,
          scales_mxfp4 ? "MXFP4, whose scales are exponents, has none but them" : reason_against(part, adds_bias));
    }
  }
}

std::vector<std::byte> WeightParts::scales(const std::vector<std::int64_t>& shape, ScaleLayout layout) const {
  const LocatedTensor located = checkpoint_.find(scales_name());
  if (!may_lie(layout, Format::nvfp4, OperandRole::tokens)) {
    reject(fmt::format("{}: scales of NVFP4 are row-major or blocked, not {}", described(located), name(layout)));
  }
  const Extents of(shape);
  if (located.tensor->dtype != Dtype::f8_e4m3 || !of.fit(*located.tensor, layout)) {
    reject(fmt::format("{}, but the scales must be F8_E4M3 {}{}", described_with_type(located),
                       layout == ScaleLayout::row_major
                           ? fmt::format("[{}]", fmt::join(of.scales_shape, ", "))
                           : fmt::format("{} in the blocked layout", of.scales_bytes(layout)),
                       of.guess(*located.tensor, layout)));
  }
  std::vector<std::byte> bytes = located.read();
  if (layout == ScaleLayout::blocked) {
    check_padding(located, bytes, of);
  }
  check_e4m3_scales(located, bytes);
  return bytes;
}

std::vector<std::byte> WeightParts::exponents(const std::vector<std::int64_t>& shape, ScaleLayout layout) const {
  const LocatedTensor located = checkpoint_.find(scales_name());
  if (layout != ScaleLayout::row_major) {
    reject(fmt::format("{}: scales of MXFP4 are row-major, not {}", described(located), name(layout)));
  }
  std::vector<std::int64_t> expected = shape;
  expected.back() /= mxfp4_block;
  if (located.tensor->shape != expected) {
    reject(fmt::format("{}, but the scales of MXFP4 must be U8 or F8_E8M0 [{}], those of NVFP4 F8_E4M3",
                       described_with_type(located), fmt::join(expected, ", ")));
  }
  return located.read();
}

std::int64_t unpacked_k(const LocatedTensor& values, Stored stored) {
  const bool is_mxfp4 = stored == Stored::mxfp4;
  const std::int64_t multiple = is_mxfp4 ? mxfp4_block : scale_block;
  const std::int64_t k = size_product(values.tensor->shape.back(), 2);
  if (k % multiple != 0) {  // too_large is no multiple
    reject(fmt::format("{}, two {} a byte, but K = 2·{} must be a multiple of {}", described_with_type(values),
                       is_mxfp4 ? "MXFP4 values (scales in U8 or F8_E8M0)" : "NVFP4 values",
                       values.tensor->shape.back(), multiple));
  }
  return k;
}

namespace {

/// F8_E8M0: powers of two, all of which float32 represents.
std::vector<float> powers_of_two(std::span<const std::byte> exponents) {
  constexpr std::byte nan{255};
  std::vector<float> values;
  values.reserve(exponents.size());
  for (const std::byte exponent : exponents) {
    values.push_back(exponent == nan ? std::numeric_limits<float>::quiet_NaN()
                                     : std::ldexp(1.0F, std::to_integer<int>(exponent) - 127));
  }
  return values;
}

/// F32, BF16, F16 or F8_E8M0.
std::vector<float> floats_of(const LocatedTensor& located) {
  const Dtype dtype = located.tensor->dtype;
  if (dtype != Dtype::f32 && dtype != Dtype::bf16 && dtype != Dtype::f16 && dtype != Dtype::f8_e8m0) {
    reject(fmt::format("{}, but scales of FP8 must be F32, BF16, F16 or F8_E8M0", described_with_type(located)));
  }
  const std::vector<std::byte> bytes = located.read();
  if (dtype == Dtype::f8_e8m0) {
    return powers_of_two(bytes);
  }
  std::vector<float> values(bytes.size() / (dtype == Dtype::f32 ? 4 : 2));
  if (dtype == Dtype::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t pattern;
    std::memcpy(&pattern, bytes.data() + 2 * i, sizeof pattern);
    values[i] = dtype == Dtype::bf16 ? bf16_to_float(pattern) : fp16_to_float(pattern);
  }
  return values;
}

/// A possible shape of the scales, and the format that it implies; the first match counts.
struct Fp8Shape {
  Format format;
  std::vector<std::int64_t> shape;
};

std::vector<Fp8Shape> fp8_shapes(const std::vector<std::int64_t>& values, OperandRole role, ScaleLayout layout) {
  const bool is_stack = values.size() == 3;
  const std::int64_t rows = values[values.size() - 2];
  const std::int64_t k = values.back();
  const Scales::Block block = scale_block_of(Format::fp8_block, role, k);
  std::vector<std::int64_t> blocks{ceil_div(rows, block.rows), ceil_div(k, block.columns)};
  if (layout == ScaleLayout::column_major && role == OperandRole::tokens) {
    blocks = {blocks[1], round_up(rows, std::int64_t{4})};
  }
  std::vector<Fp8Shape> shapes{{Format::fp8_tensor, {}},     {Format::fp8_tensor, {1}}, {Format::fp8_tensor, {1, 1}},
                               {Format::fp8_row, {rows, 1}}, {Format::fp8_row, {rows}}, {Format::fp8_block, blocks}};
  for (Fp8Shape& one : shapes) {
    if (is_stack) {
      one.shape.insert(one.shape.begin(), values.front());
    }
  }
  return shapes;
}

bool is_mxfp8(const StoredTensor& scales, std::vector<std::int64_t> shape) {
  shape.back() = ceil_div(shape.back(), mxfp4_block);
  return (scales.dtype == Dtype::u8 || scales.dtype == Dtype::f8_e8m0) && scales.shape == shape;
}

}  // namespace

Fp8Scales WeightParts::fp8_scales(const std::vector<std::int64_t>& shape, OperandRole role, ScaleLayout layout) const {
  const LocatedTensor located = checkpoint_.find(checkpoint_.has(scales_name()) ? scales_name() : inverse_name());
  if (layout == ScaleLayout::blocked) {
    reject(fmt::format("{}: scales of FP8 are row-major or column-major, not {}", described(located), name(layout)));
  }
  const std::vector<Fp8Shape> shapes = fp8_shapes(shape, role, layout);
  const auto fits = std::find_if(shapes.begin(), shapes.end(),
                                 [&](const Fp8Shape& one) { return one.shape == located.tensor->shape; });
  if (fits == shapes.end() && is_mxfp8(*located.tensor, shape)) {
    reject(
        fmt::format("{}, two to the power of a byte for 32 values: MXFP8 is not read", described_with_type(located)));
  }
  if (fits == shapes.end()) {
    reject(fmt::format("{}, but scales of FP8 values [{}] must be one{}, [{}] or [{}]", described_with_type(located),
                       fmt::join(shape, ", "), shape.size() == 3 ? " for each matrix" : "",
                       fmt::join(shapes[3].shape, ", "), fmt::join(shapes.back().shape, ", ")));
  }
  Fp8Scales found{fits->format, {}, {}};
  std::vector<float> values = floats_of(located);
  if (found.format == Format::fp8_tensor) {
    check_global_scales(located, values);
    found.global_scales = std::move(values);
  } else {
    check_fp8_scales(located, values);
    const auto bytes = std::as_bytes(std::span(values));
    found.scales.assign(bytes.begin(), bytes.end());
  }
  return found;
}

std::vector<float> WeightParts::global_scales(std::size_t wanted) const {
  const std::string name = global_scale_name();
  if (!checkpoint_.has(name)) {
    if (is_packed_) {
      reject(fmt::format("{}, but its global scale {} is missing", described_with_type(values()), quoted_name(name)));
    }
    return {};
  }
  const LocatedTensor located = checkpoint_.find(name);
  const std::size_t bytes_of_one = sizeof(float);
  const std::uint64_t bytes = located.tensor->bytes();
  if (located.tensor->dtype != Dtype::f32 || (bytes != wanted * bytes_of_one && bytes != bytes_of_one)) {
    reject(fmt::format("{}, but {}", described_with_type(located),
                       wanted == 1 ? "a global scale must be one F32"
                                   : fmt::format("global scales must be {} F32, or one for all", wanted)));
  }
  std::vector<float> factors(bytes / bytes_of_one);
  const std::vector<std::byte> read = located.read();
  std::memcpy(factors.data(), read.data(), read.size());
  if (is_packed_) {
    for (float& value : factors) {
      const float factor = 1.0F / value;
      if (!(value > 0.0F) || !std::isfinite(value) || !std::isfinite(factor)) {
        reject(
            fmt::format("{} is {}, but the values are divided by it: it must be positive and finite, and so must "
                        "be its reciprocal",
                        described(located), value));
      }
      value = factor;
    }
  } else {
    check_global_scales(located, factors);
  }
  if (factors.size() < wanted) {
    factors.resize(wanted, factors.front());
  }
  return factors;
}

}  // namespace thresher::formats
