#include "formats/elements.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/integers.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

template <typename T>
T load(const Tensor& matrix, std::int64_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(matrix.data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

double nvfp4_element(const Tensor& matrix, std::int64_t row, std::int64_t column) noexcept {
  const std::int64_t index = row * matrix.strides[0] + column;
  const auto pair = load<std::uint8_t>(matrix, index / 2);
  const auto code = static_cast<std::uint8_t>(index % 2 == 0 ? pair & 0xF : pair >> 4);
  const std::int64_t scale_columns = matrix.shape[1] / scale_block;
  const std::size_t scale = scale_offset(row, column / scale_block, scale_columns, matrix.scales.layout);
  return static_cast<double>(e2m1_to_float(code)) * static_cast<double>(e4m3_to_float(matrix.scales.codes()[scale]));
}

template <typename... Arguments>
[[noreturn]] void reject_role(std::string_view role, fmt::format_string<Arguments...> problem,
                              Arguments&&... arguments) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {}", role, fmt::format(problem, std::forward<Arguments>(arguments)...)));
}

void check_nvfp4(const Tensor& tensor, std::string_view role) {
  if (tensor.shape[1] % scale_block != 0) {
    reject_role(role, "is NVFP4 with K = {}, but K must be a multiple of {}", tensor.shape[1], scale_block);
  }
  if (tensor.strides[0] % 2 != 0) {
    reject_role(role, "is NVFP4 with a row stride of {} elements, but rows must start on a byte: use an even stride",
                tensor.strides[0]);
  }
}

void check_scales(const Tensor& tensor, std::string_view role) {
  const FormatTraits& traits = format_traits(tensor.format);
  if (tensor.format == Format::nvfp4) {
    check_nvfp4(tensor, role);
  }
  if (tensor.scales.data == nullptr && tensor.elements() != 0) {
    reject_role(role, "is {} without scales; set Tensor::scales.data to its {} scales", traits.name,
                name(traits.scale_format));
  }
  if (!may_lie(tensor.scales.layout, tensor.format, OperandRole::tokens)) {
    reject_role(role, "is {} with {} scales, which they cannot be", traits.name, name(tensor.scales.layout));
  }
  const Scales::Block& block = tensor.scales.block;
  const std::int64_t k = tensor.shape[1];
  if (tensor.scales.format != traits.scale_format ||
      (block != scale_block_of(tensor.format, OperandRole::tokens, k) &&
       block != scale_block_of(tensor.format, OperandRole::weights, k))) {
    reject_role(role, "is {} with {} scales of {} rows and {} columns each; Tensor::describe_scales says what they are",
                traits.name, name(tensor.scales.format), block.rows, block.columns);
  }
}

}  // namespace

void check_matrix(const Tensor& tensor, std::string_view role, std::int64_t rows, std::int64_t columns, Format format) {
  if (tensor.format != format) {
    reject_role(role, "is {}, but the problem says {}", name(tensor.format), name(format));
  }
  if (tensor.rank != 2) {
    reject_role(role, "has {} dimensions, but must be a matrix", tensor.rank);
  }
  if (tensor.shape[0] != rows || tensor.shape[1] != columns) {
    reject_role(role, "is [{}, {}], but the problem needs [{}, {}]", tensor.shape[0], tensor.shape[1], rows, columns);
  }
  if (rows < 0 || columns < 0) {
    reject_role(role, "has the negative shape [{}, {}]", rows, columns);
  }
  if (tensor.device.kind != DeviceKind::cpu) {
    reject_role(role, "lies in GPU memory, but must be in CPU memory here; copy it first");
  }
  if ((columns > 1 && tensor.strides[1] != 1) || (rows > 1 && tensor.strides[0] < columns)) {
    reject_role(role, "has the strides [{}, {}], but the last dimension must be contiguous and rows must not overlap",
                tensor.strides[0], tensor.strides[1]);
  }
  if (rows != 0 && columns != 0 && size_product(rows, std::max(tensor.strides[0], columns)) == too_large) {
    reject_role(role, "is [{}, {}] with a row stride of {}, more than 63 bits can count", rows, columns,
                tensor.strides[0]);
  }
  if (tensor.data == nullptr && tensor.elements() != 0) {
    reject_role(role, "has no data; its pointer is null");
  }
  if (format_traits(format).has_scales()) {
    check_scales(tensor, role);
  }
}

double element(const Tensor& matrix, std::int64_t row, std::int64_t column) noexcept {
  const std::int64_t index = row * matrix.strides[0] + column;
  switch (matrix.format) {
    case Format::fp32: return static_cast<double>(load<float>(matrix, index));
    case Format::fp16: return static_cast<double>(fp16_to_float(load<std::uint16_t>(matrix, index)));
    case Format::bf16: return static_cast<double>(bf16_to_float(load<std::uint16_t>(matrix, index)));
    case Format::fp8_e4m3:
    case Format::fp8_tensor: return static_cast<double>(e4m3_to_float(load<std::uint8_t>(matrix, index)));
    case Format::fp8_row:
    case Format::fp8_block:
      return static_cast<double>(e4m3_to_float(load<std::uint8_t>(matrix, index))) *
             static_cast<double>(fp8_scale(matrix, row, column));
    case Format::nvfp4: return nvfp4_element(matrix, row, column);
    case Format::int32: return static_cast<double>(load<std::int32_t>(matrix, index));
    case Format::uint8: return static_cast<double>(load<std::uint8_t>(matrix, index));
  }
  return 0.0;
}

double global_scale(const Tensor& tensor) noexcept {
  return tensor.global_scale == nullptr ? 1.0 : static_cast<double>(*tensor.global_scale);
}

}  // namespace thresher::formats
