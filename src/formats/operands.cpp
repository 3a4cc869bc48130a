#include "formats/operands.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

[[noreturn]] void reject(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

std::string type_and_shape(const StoredTensor& tensor) {
  return fmt::format("{} [{}]", name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

/// The names in a file, as many as fit a sentence.
std::string listing(const SafetensorsFile& file) {
  constexpr std::size_t most = 8;
  const auto& tensors = file.header().tensors;
  std::string names;
  for (std::size_t i = 0; i < std::min(most, tensors.size()); ++i) {
    names += (i == 0 ? "" : ", ") + printable(tensors[i].name);
  }
  return tensors.empty() ? "no tensors" : names + (tensors.size() > most ? ", …" : "");
}

/// Two names stand for the same tensor: the one that the file has; null if it has neither.
const StoredTensor* one_of(const SafetensorsFile& file, const std::string& first, const std::string& second) {
  const StoredTensor* one = file.find(first);
  const StoredTensor* other = file.find(second);
  if (one != nullptr && other != nullptr) {
    reject(fmt::format("{} has both {} and {}, but only one of them may be there", file.path(), printable(first),
                       printable(second)));
  }
  return one != nullptr ? one : other;
}

void check_is_matrix(const SafetensorsFile& file, const StoredTensor& tensor) {
  if (tensor.shape.size() != 2) {
    reject(fmt::format("{} is {}, but must be a matrix [rows, K]", described(file, tensor), type_and_shape(tensor)));
  }
}

std::int64_t checked_nvfp4_k(const SafetensorsFile& file, const StoredTensor& values) {
  check_is_matrix(file, values);
  std::int64_t k = 0;
  if (__builtin_mul_overflow(values.shape[1], std::int64_t{2}, &k) || k % scale_block != 0) {
    reject(fmt::format("{} is {}, two NVFP4 values a byte, but K = 2·{} must be a multiple of {}",
                       described(file, values), type_and_shape(values), values.shape[1], scale_block));
  }
  return k;
}

bool has_scale_shape(const StoredTensor& scales, std::int64_t rows, std::int64_t k, ScaleLayout layout) {
  const bool right_size = scales.bytes() == scale_bytes(rows, k, layout);
  const bool is_matrix = scales.shape.size() == 2 && scales.shape[0] == rows && scales.shape[1] == k / scale_block;
  return right_size && (layout == ScaleLayout::blocked || scales.shape.size() == 1 || is_matrix);
}

void check_scales(const SafetensorsFile& file, const StoredTensor& scales, std::int64_t rows, std::int64_t k,
                  ScaleLayout layout) {
  if (scales.dtype == Dtype::f8_e4m3 && has_scale_shape(scales, rows, k, layout)) {
    return;
  }
  const std::string expected = layout == ScaleLayout::row_major
                                   ? fmt::format("[{}, {}]", rows, k / scale_block)
                                   : fmt::format("{} in the blocked layout", scale_bytes(rows, k, layout));
  const auto other = layout == ScaleLayout::row_major ? ScaleLayout::blocked : ScaleLayout::row_major;
  const bool fits_other = scales.dtype == Dtype::f8_e4m3 && has_scale_shape(scales, rows, k, other);
  reject(fmt::format("{} is {}, but the scales must be F8_E4M3 {}{}", described(file, scales), type_and_shape(scales),
                     expected,
                     !fits_other                     ? ""
                     : other == ScaleLayout::blocked ? "; its size fits the blocked scale layout"
                                                     : "; its size fits the row-major scale layout"));
}

/// Blocked padding must be zero: anything else shows that the scales are in another layout.
void check_padding(const SafetensorsFile& file, const StoredTensor& scales, std::span<const std::byte> bytes,
                   std::int64_t rows, std::int64_t k) {
  try {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(bytes.data());
    (void)convert_scales({codes, bytes.size()}, rows, k, ScaleLayout::blocked, ScaleLayout::row_major);
  } catch (const Error& error) {
    reject(fmt::format("{}: {}", described(file, scales), error.what()));
  }
}

float load_scalar(const SafetensorsFile& file, const StoredTensor& tensor) {
  float value = 0.0F;
  if (tensor.dtype != Dtype::f32 || tensor.bytes() != sizeof(value)) {
    reject(
        fmt::format("{} is {}, but a global scale must be one F32", described(file, tensor), type_and_shape(tensor)));
  }
  file.read(tensor, 0, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace

std::string described(const SafetensorsFile& file, const StoredTensor& tensor) {
  return fmt::format("tensor {} of {}", printable(tensor.name), file.path());
}

Tensor Operand::view() const noexcept {
  // Tensor is also the view of outputs, so its pointers are to mutable memory; operands are only read.
  auto* data = const_cast<std::byte*>(data_.data());
  if (format_ != Format::nvfp4) {
    return Tensor::contiguous(data, format_, {rows_, k_});
  }
  return Tensor::nvfp4(data, reinterpret_cast<const std::uint8_t*>(scales_.data()), rows_, k_,
                       global_scale_ ? &*global_scale_ : nullptr, scale_layout_);
}

Operand load_matrix(const SafetensorsFile& file, const StoredTensor& tensor) {
  constexpr std::array<std::pair<Dtype, Format>, 3> formats{
      {{Dtype::f16, Format::fp16}, {Dtype::bf16, Format::bf16}, {Dtype::f32, Format::fp32}}};
  check_is_matrix(file, tensor);
  const auto* found =
      std::find_if(formats.begin(), formats.end(), [&](const auto& pair) { return pair.first == tensor.dtype; });
  if (found == formats.end()) {
    reject(fmt::format("{} is {}, but must be F16, BF16 or F32", described(file, tensor), type_and_shape(tensor)));
  }
  Operand operand;
  operand.format_ = found->second;
  operand.rows_ = tensor.shape[0];
  operand.k_ = tensor.shape[1];
  operand.data_ = file.read(tensor);
  return operand;
}

Operand load_operand(const SafetensorsFile& file, std::string_view name, ScaleLayout scale_layout) {
  const std::string plain(name);
  const StoredTensor* values = one_of(file, plain, plain + ".weight");
  if (values == nullptr) {
    reject(fmt::format("{} has no tensor {} or {}; it has {}", file.path(), printable(plain),
                       printable(plain + ".weight"), listing(file)));
  }
  if (values->dtype == Dtype::f16 || values->dtype == Dtype::bf16) {
    return load_matrix(file, *values);
  }
  if (values->dtype != Dtype::u8) {
    reject(fmt::format("{} is {}, but an operand must be F16, BF16 or NVFP4 (U8 with scales)", described(file, *values),
                       type_and_shape(*values)));
  }
  const StoredTensor* scales = file.find(values->name + "_scale");
  if (scales == nullptr) {
    reject(fmt::format("{} is {}, two NVFP4 values a byte, but its scales {} are missing", described(file, *values),
                       type_and_shape(*values), printable(values->name + "_scale")));
  }
  Operand operand;
  operand.format_ = Format::nvfp4;
  operand.rows_ = values->shape.empty() ? 0 : values->shape[0];
  operand.k_ = checked_nvfp4_k(file, *values);
  operand.scale_layout_ = scale_layout;
  check_scales(file, *scales, operand.rows_, operand.k_, scale_layout);
  operand.scales_ = file.read(*scales);
  if (scale_layout == ScaleLayout::blocked) {
    check_padding(file, *scales, operand.scales_, operand.rows_, operand.k_);
  }
  const StoredTensor* global = one_of(file, values->name + "_global_scale", values->name + "_scale_2");
  if (global != nullptr) {
    operand.global_scale_ = load_scalar(file, *global);
  }
  operand.data_ = file.read(*values);
  return operand;
}

}  // namespace thresher::formats
