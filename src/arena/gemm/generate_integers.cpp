#include "arena/gemm/generate_integers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "arena/data/element_writer.hpp"
#include "arena/gemm/generate.hpp"
#include "formats/scales.hpp"

namespace thresher::arena {
namespace {

using formats::scale_block;

/// Scales are 2^(e-1) and the global scale is 2, so that value = code · 2^e with e of -1, 0, 1.
constexpr float integer_global_scale = 2.0F;

void write_nvfp4(HostTensor& tensor, const std::vector<float>& values, Random& random) {
  const std::int64_t k = tensor.shape[1];
  const std::int64_t columns = k / scale_block;
  tensor.global_scales = {integer_global_scale};
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const int exponent = static_cast<int>(random.below(3)) - 1;
      const float power = std::ldexp(1.0F, exponent);
      tensor.scales[formats::scale_offset(row, column, columns, tensor.scale_layout)] =
          formats::float_to_e4m3(power / integer_global_scale);
      for (std::int64_t i = 0; i < scale_block; ++i) {
        const auto index = static_cast<std::size_t>(row * k + column * scale_block + i);
        const std::uint8_t code = formats::float_to_e2m1(values[index] / power);
        tensor.values[index / 2] |= static_cast<std::uint8_t>(index % 2 == 0 ? code : code << 4);
      }
    }
  }
}

/// Scales are 2^e with e of -1, 0, 1; the one of fp8_tensor is 2. Codes hold what they leave of a value exactly.
void write_fp8(HostTensor& tensor, const std::vector<float>& values, Random& random) {
  if (tensor.scales.empty()) {
    tensor.global_scales = {integer_global_scale};
  }
  for (std::size_t i = 0; i < tensor.scales.size() / sizeof(float); ++i) {
    const float scale = std::ldexp(1.0F, static_cast<int>(random.below(3)) - 1);
    std::memcpy(&tensor.scales[i * sizeof scale], &scale, sizeof scale);
  }
  const Tensor matrix = tensor.view();
  const std::int64_t k = tensor.shape[1];
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const float scale = tensor.scales.empty() ? integer_global_scale : formats::fp8_scale(matrix, i / k, i % k);
    write_element(tensor, i, values[static_cast<std::size_t>(i)] / scale);
  }
}

/// `count` of each row's elements become `value`, at random places.
std::vector<float> sparse_rows(std::int64_t rows, std::int64_t k, std::int64_t count, float value, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(rows * k));
  std::vector<std::int64_t> places(static_cast<std::size_t>(k));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < k; ++i) {
      places[static_cast<std::size_t>(i)] = i;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto other = i + random.index(k - i);
      std::swap(places[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(other)]);
      values[static_cast<std::size_t>(row * k + places[static_cast<std::size_t>(i)])] = value;
    }
  }
  return values;
}

std::vector<float> uniform_integers(std::int64_t elements, int low, int high, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (float& value : values) {
    value = static_cast<float>(low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1))));
  }
  return values;
}

std::vector<float> operand_values(const HostTensor& tensor, Random& random) {
  if (tensor.name == "a") {
    const std::int64_t k = tensor.shape[1];
    const std::int64_t count = std::min<std::int64_t>(k, integer_gate_floor);
    const auto value = static_cast<float>((integer_gate_floor + count - 1) / count);
    return sparse_rows(tensor.rows(), k, count, value, random);
  }
  return tensor.name == "b1" ? uniform_integers(tensor.elements(), 1, 2, random)
                             : uniform_integers(tensor.elements(), -2, 2, random);
}

}  // namespace

HostTensor integer_matrix(HostTensor tensor, Random& random) {
  const std::vector<float> values = operand_values(tensor, random);
  if (tensor.format == Format::nvfp4) {
    write_nvfp4(tensor, values, random);
    return tensor;
  }
  if (bits(tensor.format) == 8) {
    write_fp8(tensor, values, random);
    return tensor;
  }
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    write_element(tensor, i, values[static_cast<std::size_t>(i)]);
  }
  return tensor;
}

}  // namespace thresher::arena
