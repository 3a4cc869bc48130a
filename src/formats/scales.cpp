#include "formats/scales.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/integers.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

void check_padding(std::span<const std::uint8_t> blocked, std::int64_t rows, std::int64_t columns) {
  const std::int64_t padded_rows = round_up(rows, 128);
  const std::int64_t padded_columns = round_up(columns, 4);
  for (std::int64_t row = 0; row < padded_rows; ++row) {
    for (std::int64_t column = row < rows ? columns : 0; column < padded_columns; ++column) {
      const std::uint8_t code = blocked[scale_offset(row, column, columns, ScaleLayout::blocked)];
      if (code != 0) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("scales have {:#04x} in the padding at row {}, block {} of the blocked layout of [{}, "
                                "{}], which must be zero; are they row-major?",
                                code, row, column, rows, columns));
      }
    }
  }
}

}  // namespace

std::int64_t scale_index(const Tensor& matrix, std::int64_t row, std::int64_t column) noexcept {
  const Scales& scales = matrix.scales;
  const std::int64_t row_block = row / scales.block.rows;
  const std::int64_t column_block = column / scales.block.columns;
  if (scales.layout == ScaleLayout::column_major) {
    return column_block * round_up(ceil_div(matrix.shape[0], scales.block.rows), 4) + row_block;
  }
  const std::int64_t columns = ceil_div(matrix.shape[1], scales.block.columns);
  return static_cast<std::int64_t>(scale_offset(row_block, column_block, columns, scales.layout));
}

float fp8_scale(const Tensor& matrix, std::int64_t row, std::int64_t column) noexcept {
  float scale;
  const auto* const all = static_cast<const std::byte*>(matrix.scales.data);
  std::memcpy(&scale, all + scale_index(matrix, row, column) * static_cast<std::int64_t>(sizeof scale), sizeof scale);
  return scale;
}

std::vector<std::uint8_t> convert_scales(std::span<const std::uint8_t> scales, std::int64_t rows, std::int64_t k,
                                         ScaleLayout from, ScaleLayout to) {
  for (const ScaleLayout layout : {from, to}) {
    if (!may_lie(layout, Format::nvfp4, OperandRole::tokens)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("scales of NVFP4 are row-major or blocked, not {}", name(layout)));
    }
  }
  if (scales.size() != scale_bytes(rows, k, from)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("scales have {} bytes, but an NVFP4 tensor [{}, {}] has {} in this layout", scales.size(),
                            rows, k, scale_bytes(rows, k, from)));
  }
  const std::int64_t columns = k / scale_block;
  if (columns == 0) {
    return {};  // without a loop over empty rows
  }
  if (from == ScaleLayout::blocked) {
    check_padding(scales, rows, columns);
  }
  std::vector<std::uint8_t> converted(scale_bytes(rows, k, to), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      converted[scale_offset(row, column, columns, to)] = scales[scale_offset(row, column, columns, from)];
    }
  }
  return converted;
}

}  // namespace thresher::formats
