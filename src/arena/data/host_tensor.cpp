#include "arena/data/host_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "core/integers.hpp"
#include "formats/elements.hpp"
#include "formats/scales.hpp"

namespace thresher::arena {
namespace {

void rotate_bytes(std::vector<std::uint8_t>& bytes, std::int64_t rows, std::int64_t shift) {
  const std::int64_t row_bytes = static_cast<std::int64_t>(bytes.size()) / rows;
  std::rotate(bytes.begin(), bytes.begin() + shift * row_bytes, bytes.end());
}

}  // namespace

std::int64_t HostTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Tensor HostTensor::view() const {
  void* data = const_cast<std::uint8_t*>(values.data());  // a Tensor has one pointer for reading and writing
  Tensor tensor = Tensor::contiguous(data, format, shape);
  tensor.scales.data = scales.empty() ? nullptr : scales.data();
  tensor.scales.layout = scale_layout;
  tensor.describe_scales(role());
  tensor.global_scale = global_scales.empty() ? nullptr : global_scales.data();
  return tensor;
}

HostTensor make_host_tensor(std::string name, Format format, std::vector<std::int64_t> shape, ScaleLayout layout,
                            OperandRole role) {
  HostTensor tensor{std::move(name), format, std::move(shape), {}, {}, layout};
  tensor.is_weight = role == OperandRole::weights;
  tensor.values.resize(static_cast<std::size_t>(tensor.elements() * bits(format) / 8));
  if (format_traits(format).has_scales()) {
    tensor.scales.resize(scale_bytes(tensor.view()));
  }
  return tensor;
}

void flip_signs(HostTensor& tensor, Random& random) {
  if (!tensor.is_index) {
    flip_signs(std::span(tensor.values), tensor.format, random);
  }
}

void flip_signs(std::span<std::uint8_t> values, Format format, Random& random) {
  const int element_bits = bits(format);
  std::uint64_t signs = 0;
  for (int bit = element_bits - 1; bit < 64; bit += element_bits) {
    signs |= std::uint64_t{1} << bit;
  }
  std::size_t byte = 0;
  for (; byte + 8 <= values.size(); byte += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, &values[byte], 8);
    word ^= random.next() & signs;
    std::memcpy(&values[byte], &word, 8);
  }
  const std::uint64_t last = random.next() & signs;
  for (std::size_t i = 0; byte + i < values.size(); ++i) {
    values[byte + i] ^= static_cast<std::uint8_t>(last >> (8 * i));
  }
}

void negate_one_element(HostTensor& tensor, Random& random) {
  constexpr int candidates = 256;
  const std::int64_t elements = tensor.elements();
  if (elements == 0 || tensor.is_index) {
    return;
  }
  const std::int64_t columns = tensor.shape.back();
  Tensor matrix = tensor.view();
  matrix.rank = 2;  // a tensor of any rank, as rows of its last dimension
  matrix.shape = {elements / columns, columns};
  matrix.strides = {columns, 1};
  std::int64_t chosen = 0;
  double greatest = -1;
  for (int i = 0; i < candidates; ++i) {
    const std::int64_t row = random.index(elements / columns);
    const std::int64_t column = random.index(columns);
    const double magnitude = std::fabs(formats::element(matrix, row, column));
    if (magnitude > greatest) {
      greatest = magnitude;
      chosen = row * columns + column;
    }
  }
  const std::int64_t sign_bit = (chosen + 1) * bits(tensor.format) - 1;
  tensor.values[static_cast<std::size_t>(sign_bit / 8)] ^= static_cast<std::uint8_t>(1U << (sign_bit % 8));
}

void copy_row_scales(const HostTensor& from, std::int64_t row, HostTensor& to, std::int64_t to_row) {
  const Tensor source = from.view();
  const Tensor target = to.view();
  const std::int64_t bytes = bits(target.scales.format) / 8;
  const std::int64_t of_a_scale = target.scales.block.columns;
  const std::int64_t columns = target.shape[1];
  const auto copy = [&](std::int64_t column, std::int64_t scales) {
    std::copy_n(from.scales.begin() + formats::scale_index(source, row, column) * bytes, scales * bytes,
                to.scales.begin() + formats::scale_index(target, to_row, column) * bytes);
  };
  if (from.scale_layout == ScaleLayout::row_major && to.scale_layout == ScaleLayout::row_major) {
    copy(0, ceil_div(columns, of_a_scale));
    return;
  }
  for (std::int64_t column = 0; column < columns; column += of_a_scale) {
    copy(column, 1);
  }
}

HostTensor rotate_rows(const HostTensor& tensor, std::int64_t shift) {
  HostTensor rotated = tensor;
  const std::int64_t rows = std::max<std::int64_t>(tensor.rows(), 1);
  const std::int64_t by = shift % rows;
  if (by == 0 || tensor.values.empty() || tensor.is_index) {
    return rotated;
  }
  rotate_bytes(rotated.values, rows, by);
  if (tensor.shape.size() == 3) {
    rotate_bytes(rotated.scales, rows, by);
    if (!rotated.global_scales.empty()) {
      std::rotate(rotated.global_scales.begin(), rotated.global_scales.begin() + by, rotated.global_scales.end());
    }
    return rotated;
  }
  if (format_traits(tensor.format).has_scales()) {
    const std::int64_t of_a_scale = tensor.view().scales.block.rows;
    const std::int64_t blocks = ceil_div(rows, of_a_scale);
    for (std::int64_t block = 0; block < blocks; ++block) {
      copy_row_scales(tensor, (block + by / of_a_scale) % blocks * of_a_scale, rotated, block * of_a_scale);
    }
  }
  return rotated;
}

}  // namespace thresher::arena
