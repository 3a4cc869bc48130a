#include "support/dual_gemm_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"

namespace thresher::test {
namespace {

constexpr std::uint8_t poison_byte = 0xFF;  // a NaN in every floating-point format

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

/// e4m3 codes that are not NaN.
std::uint8_t finite_scale(std::mt19937& random) {
  const auto code = static_cast<std::uint8_t>(std::uniform_int_distribution<int>(0, 253)(random));
  return code < 0x7F ? code : static_cast<std::uint8_t>(code + 1);
}

/// Root mean square of e2m1 × e4m3 with uniformly distributed finite codes.
double nvfp4_rms() {
  double values = 0.0;
  double scales = 0.0;
  for (const float value : formats::e2m1_values) {
    values += static_cast<double>(value) * static_cast<double>(value) / 16.0;
  }
  for (const float scale : formats::e4m3_values) {
    scales += std::isnan(scale) ? 0.0 : static_cast<double>(scale) * static_cast<double>(scale) / 254.0;
  }
  return std::sqrt(values * scales);
}

Matrix random_operand(Format format, OperandRole role, std::int64_t rows, std::int64_t columns, double deviation,
                      const Layout& layout, std::mt19937& random) {
  if (format != Format::nvfp4) {
    std::normal_distribution<float> normal(0.0F, static_cast<float>(deviation));
    const Matrix::Values value = [&](std::int64_t, std::int64_t) { return normal(random); };
    return bits(format) == 8 ? Matrix::fp8(format, role, rows, columns, layout, value)
                             : Matrix::of_values(format, rows, columns, layout.row_gap, value);
  }
  std::uniform_int_distribution<int> codes(0, 15);
  std::uniform_int_distribution<int> moderate_scales(0x20, 0x3F);
  const Matrix::Codes code = [&](std::int64_t, std::int64_t) { return static_cast<std::uint8_t>(codes(random)); };
  const Matrix::Codes scale = [&](std::int64_t, std::int64_t) {
    const auto sign = static_cast<std::uint8_t>((random() & 1U) << 7);
    return layout.global_scales ? finite_scale(random) : static_cast<std::uint8_t>(moderate_scales(random) | sign);
  };
  return Matrix::nvfp4(rows, columns, layout, code, scale, static_cast<float>(deviation / nvfp4_rms()));
}

/// First column 8 (24 in NVFP4), other elements in [-1, 1].
Matrix integer_operand(Format format, OperandRole role, std::int64_t rows, std::int64_t columns,
                       bool first_column_large, const Layout& layout, std::mt19937& random) {
  std::uniform_int_distribution<int> small(-1, 1);
  if (format != Format::nvfp4) {
    const Matrix::Values value = [&](std::int64_t, std::int64_t column) {
      return first_column_large && column == 0 ? 24.0F : static_cast<float>(small(random));
    };
    return bits(format) == 8 ? Matrix::exact_fp8(format, role, rows, columns, layout, value)
                             : Matrix::of_values(format, rows, columns, layout.row_gap, value);
  }
  // e2m1 codes 0x2 is 1, 0xA is -1, 0x7 is 6 and 0x1 is 0.5; scale codes 0x38 is 1 and 0x40 is 2, 0x48 is 4.
  const Matrix::Codes code = [&](std::int64_t, std::int64_t column) -> std::uint8_t {
    if (first_column_large && column < formats::scale_block) {
      return column == 0 ? 0x7 : 0x0;
    }
    constexpr std::array<std::uint8_t, 3> minus_one_zero_one{0xA, 0x0, 0x2};
    return minus_one_zero_one[size(small(random) + 1)];
  };
  const Matrix::Codes scale = [&](std::int64_t, std::int64_t block) -> std::uint8_t {
    return first_column_large && block == 0 ? 0x48 : 0x38;
  };
  Layout without_global = layout;
  without_global.global_scales = false;
  return Matrix::nvfp4(rows, columns, without_global, code, scale, 1.0F);
}

}  // namespace

Matrix::Matrix(Format format, std::int64_t rows, std::int64_t columns, std::int64_t row_gap)
    : format_(format),
      rows_(rows),
      scaled_rows_(rows),
      columns_(columns),
      row_stride_(columns + row_gap),
      bytes_(size(rows * row_stride_ * bits(format) / 8), poison_byte) {}

Matrix Matrix::of_values(Format format, std::int64_t rows, std::int64_t columns, std::int64_t row_gap,
                         const Values& value) {
  Matrix matrix(format, rows, columns, row_gap);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const float element = value(row, column);
      if (format == Format::fp32) {
        std::memcpy(&matrix.bytes_[size((row * matrix.row_stride_ + column) * 4)], &element, 4);
      } else {
        matrix.set_pattern(row, column,
                           format == Format::fp16 ? formats::float_to_fp16(element) : formats::float_to_bf16(element));
      }
    }
  }
  return matrix;
}

Matrix Matrix::output(Format format, std::int64_t matrices, std::int64_t rows, std::int64_t columns,
                      const Layout& layout) {
  Matrix matrix(format, matrices * rows, columns, layout.out_row_gap);
  matrix.scaled_rows_ = rows;
  matrix.scale_layout_ =
      may_lie(layout.out_scales, format, OperandRole::tokens) ? layout.out_scales : ScaleLayout::row_major;
  matrix.powers_of_two_ = layout.out_powers_of_two && (format == Format::fp8_row || format == Format::fp8_block);
  matrix.scales_.assign(size(matrices) * scale_bytes(format, OperandRole::tokens, rows, columns, matrix.scale_layout_),
                        poison_byte);
  matrix.has_global_scale_ = format == Format::fp8_tensor || format == Format::nvfp4;
  matrix.global_scale_ = format == Format::fp8_tensor ? 0.5F : 0.01F;
  return matrix;
}

Matrix Matrix::nvfp4(std::int64_t rows, std::int64_t columns, const Layout& layout, const Codes& code,
                     const Codes& scale, float global_scale) {
  Matrix matrix(Format::nvfp4, rows, columns, layout.row_gap);
  matrix.scale_layout_ = layout.scales;
  matrix.global_scale_ = global_scale;
  matrix.has_global_scale_ = layout.global_scales;
  matrix.scales_.assign(scale_bytes(rows, columns, layout.scales), 0);
  const std::int64_t blocks = columns / formats::scale_block;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; column += 2) {
      const std::uint8_t low = code(row, column);
      const std::uint8_t high = code(row, column + 1);
      matrix.bytes_[size((row * matrix.row_stride_ + column) / 2)] = static_cast<std::uint8_t>(low | high << 4);
    }
    for (std::int64_t block = 0; block < blocks; ++block) {
      matrix.scales_[matrix.scale_at(row, block)] = scale(row, block);
    }
  }
  return matrix;
}

Matrix Matrix::of_quantised(formats::Fp8Matrix quantised, const Layout& layout) {
  Matrix matrix(quantised.format, quantised.rows, quantised.k, layout.row_gap);
  matrix.role_ = quantised.role;
  matrix.scale_layout_ = quantised.scale_layout;
  for (std::int64_t row = 0; row < quantised.rows; ++row) {
    std::copy_n(quantised.values.begin() + row * quantised.k, quantised.k,
                matrix.bytes_.begin() + row * matrix.row_stride_);
  }
  matrix.has_global_scale_ = !format_traits(quantised.format).has_scales();
  if (matrix.has_global_scale_) {
    matrix.global_scale_ = quantised.scales.front();
    return matrix;
  }
  // Matrices of a stack that end within a block of rows have scales of their own: some are behind the others.
  const std::size_t own = quantised.scales.size();
  const std::size_t all = own * (quantised.format == Format::fp8_block ? 128 : 1);
  matrix.scales_.resize(all * sizeof(float));
  for (std::size_t i = 0; i < all; ++i) {
    std::memcpy(&matrix.scales_[i * sizeof(float)], &quantised.scales[i % own], sizeof(float));
  }
  return matrix;
}

namespace {

std::vector<float> values_of(std::int64_t rows, std::int64_t columns, const Matrix::Values& value) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      values.push_back(value(row, column));
    }
  }
  return values;
}

ScaleLayout possible(ScaleLayout wanted, Format format, OperandRole role) {
  return may_lie(wanted, format, role) ? wanted : ScaleLayout::row_major;
}

}  // namespace

Matrix Matrix::fp8(Format format, OperandRole role, std::int64_t rows, std::int64_t columns, const Layout& layout,
                   const Values& value) {
  std::vector<float> values = values_of(rows, columns, value);
  return of_quantised(formats::quantize_fp8(Tensor::contiguous(values.data(), Format::fp32, {rows, columns}), "operand",
                                            format, role, possible(layout.scales, format, role)),
                      layout);
}

Matrix Matrix::exact_fp8(Format format, OperandRole role, std::int64_t rows, std::int64_t columns, const Layout& layout,
                         const Values& value) {
  const std::vector<float> values = values_of(rows, columns, value);
  std::vector<float> ones(values.size(), 1.0F);
  formats::Fp8Matrix matrix = formats::quantize_fp8(Tensor::contiguous(ones.data(), Format::fp32, {rows, columns}),
                                                    "operand", format, role, possible(layout.scales, format, role));
  for (std::size_t i = 0; i < matrix.scales.size(); ++i) {
    matrix.scales[i] = std::ldexp(1.0F, static_cast<int>(i % 3) - 1);
  }
  const Tensor view = matrix.view();
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const double scale = format_traits(format).has_scales() ? formats::fp8_scale(view, i / columns, i % columns)
                                                            : formats::global_scale(view);
    matrix.values[size(i)] = formats::float_to_e4m3(static_cast<float>(static_cast<double>(values[size(i)]) / scale));
  }
  return of_quantised(std::move(matrix), layout);
}

Tensor Matrix::view() {
  Tensor tensor = Tensor::contiguous(bytes_.data(), format_, {rows_, columns_});
  tensor.strides[0] = row_stride_;
  if (format_traits(format_).has_scales()) {
    tensor.scales.data = scales_.data() + scales_at_;
    tensor.scales.layout = scale_layout_;
    tensor.scales.powers_of_two = powers_of_two_;
    tensor.describe_scales(role_);
  }
  tensor.global_scale = has_global_scale_ ? &global_scale_ : nullptr;
  return tensor;
}

void Matrix::set_pattern(std::int64_t row, std::int64_t column, std::uint16_t pattern) {
  const std::int64_t bytes = bits(format_) / 8;
  std::memcpy(&bytes_[size((row * row_stride_ + column) * bytes)], &pattern, size(bytes));
}

void Matrix::set_value(std::int64_t row, std::int64_t column, float value) {
  set_pattern(row, column, format_ == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value));
}

void Matrix::set_scale(std::int64_t row, std::int64_t block, std::uint8_t code) {
  scales_[scale_at(row, block)] = code;
}

std::size_t Matrix::scale_at(std::int64_t row, std::int64_t block) const {
  return scales_at_ + size(row / scaled_rows_) * scale_bytes(scaled_rows_, columns_, scale_layout_) +
         formats::scale_offset(row % scaled_rows_, block, columns_ / formats::scale_block, scale_layout_);
}

void Matrix::stack_scales(std::int64_t rows) {
  if (rows_ == 0) {
    return;
  }
  const Matrix before = *this;
  scaled_rows_ = rows;
  scales_.assign(scales_at_ + size(rows_ / rows) * scale_bytes(rows, columns_, scale_layout_), 0);
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t block = 0; block < columns_ / formats::scale_block; ++block) {
      scales_[scale_at(row, block)] = before.scales_[before.scale_at(row, block)];
    }
  }
}

void Matrix::move_scales(std::size_t bytes) {
  scales_.erase(scales_.begin(), scales_.begin() + static_cast<std::ptrdiff_t>(scales_at_));
  scales_.insert(scales_.begin(), bytes, 0);
  scales_at_ = bytes;
}

void Matrix::assign(const Matrix& other) {
  std::copy(other.bytes_.begin(), other.bytes_.end(), bytes_.begin());
  std::copy(other.scales_.begin(), other.scales_.end(), scales_.begin());
  global_scale_ = other.global_scale_;
}

double Matrix::value(std::int64_t row, std::int64_t column) { return formats::element(view(), row, column); }

void Matrix::poison() {
  std::fill(bytes_.begin(), bytes_.end(), poison_byte);
  if (format_traits(format_).is_quantized_output()) {
    std::fill(scales_.begin(), scales_.end(), poison_byte);
  }
}

bool Matrix::is_poison(std::int64_t row) {
  const auto all_poison = [](const std::uint8_t* from, std::int64_t count) {
    return std::all_of(from, from + count, [](std::uint8_t byte) { return byte == poison_byte; });
  };
  if (!all_poison(bytes_.data() + row * row_stride_ * bits(format_) / 8, columns_ * bits(format_) / 8)) {
    return false;
  }
  if (scales_.empty()) {
    return true;
  }
  Tensor of_its_own = view();  // the scales of one matrix of a stack
  of_its_own.shape[0] = scaled_rows_;
  const std::size_t own = scale_bytes(of_its_own);
  const std::int64_t bytes = bits(of_its_own.scales.format) / 8;
  for (std::int64_t column = 0; column < columns_; column += of_its_own.scales.block.columns) {
    const std::int64_t at = formats::scale_index(of_its_own, row % scaled_rows_, column) * bytes;
    if (!all_poison(scales_.data() + size(row / scaled_rows_) * own + at, bytes)) {
      return false;
    }
  }
  return true;
}

bool Matrix::gaps_intact() const {
  const std::size_t stride_bytes = size(row_stride_ * bits(format_) / 8);
  const std::size_t row_bytes = size(columns_ * bits(format_) / 8);
  for (std::size_t row = 0; row < size(rows_); ++row) {
    const auto row_begin = bytes_.begin() + static_cast<std::ptrdiff_t>(row * stride_bytes);
    if (!std::all_of(row_begin + static_cast<std::ptrdiff_t>(row_bytes),
                     row_begin + static_cast<std::ptrdiff_t>(stride_bytes),
                     [](std::uint8_t byte) { return byte == poison_byte; })) {
      return false;
    }
  }
  return true;
}

DualGemmCase DualGemmCase::random(const DualGemmProblem& problem, const Layout& layout, unsigned seed) {
  std::mt19937 random(seed);
  const double weight_deviation = 4.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, problem.k)));
  Matrix a = random_operand(problem.a, OperandRole::tokens, problem.m, problem.k, 1.0, layout, random);
  Matrix b1 = random_operand(problem.b, OperandRole::weights, problem.n, problem.k, weight_deviation, layout, random);
  Matrix b2 =
      random_operand(problem.b, OperandRole::weights, problem.n, problem.k, 0.7 * weight_deviation, layout, random);
  return {problem, std::move(a), std::move(b1), std::move(b2),
          Matrix::output(problem.out, 1, problem.m, problem.n, layout)};
}

DualGemmCase DualGemmCase::integers(const DualGemmProblem& problem, const Layout& layout, unsigned seed) {
  std::mt19937 random(seed);
  Matrix a = integer_operand(problem.a, OperandRole::tokens, problem.m, problem.k, true, layout, random);
  Matrix b1 = integer_operand(problem.b, OperandRole::weights, problem.n, problem.k, true, layout, random);
  Matrix b2 = integer_operand(problem.b, OperandRole::weights, problem.n, problem.k, false, layout, random);
  return {problem, std::move(a), std::move(b1), std::move(b2),
          Matrix::output(problem.out, 1, problem.m, problem.n, layout)};
}

}  // namespace thresher::test
