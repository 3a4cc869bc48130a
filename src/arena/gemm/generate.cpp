#include "arena/gemm/generate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "arena/data/element_writer.hpp"
#include "arena/gemm/generate_integers.hpp"
#include "formats/fp8.hpp"
#include "formats/numbers.hpp"
#include "formats/nvfp4.hpp"
#include "formats/scales.hpp"

namespace thresher::arena {
namespace {

using formats::scale_block;

constexpr double gate_deviation = 4;  // of full_range
constexpr double normal_gate_deviation = 1.5;

bool is_fp8(Format format) { return format_traits(format).product_format == Format::fp8_e4m3; }

/// Root mean square of a random finite e4m3 value.
double e4m3_rms() {
  double squares = 0;
  for (int code = 0; code < 0x7F; ++code) {
    const double value = formats::e4m3_values[static_cast<std::size_t>(code)];
    squares += value * value / 0x7F;
  }
  return std::sqrt(squares);
}

/// Root mean square of a random e2m1 value times a random finite non-negative e4m3 scale.
double nvfp4_rms() {
  double values = 0;
  for (const float value : formats::e2m1_values) {
    values += static_cast<double>(value) * value / 16;
  }
  double scales = 0;
  for (int code = 0; code < 0x7F; ++code) {
    const double scale = formats::e4m3_values[static_cast<std::size_t>(code)];
    scales += scale * scale / 0x7F;
  }
  return std::sqrt(values * scales);
}

/// Codes and scales of the contest (`mask` 0xB keeps magnitudes to 1.5) or of the full range.
struct Codes {
  std::uint64_t mask;  ///< of 16 e2m1 codes
  bool is_contest;

  [[nodiscard]] std::uint8_t scale(Random& random) const {
    return is_contest ? formats::float_to_e4m3(static_cast<float>(random.uniform()))
                      : static_cast<std::uint8_t>(random.below(0x7F));
  }
};

constexpr Codes contest_codes{0xBBBBBBBBBBBBBBBBU, true};
constexpr Codes full_range_codes{~std::uint64_t{0}, false};

void fill_nvfp4(HostTensor& tensor, const Codes& codes, Random& random) {
  std::size_t byte = 0;
  for (; byte + 8 <= tensor.values.size(); byte += 8) {
    const std::uint64_t word = random.next() & codes.mask;
    std::memcpy(&tensor.values[byte], &word, 8);
  }
  const std::int64_t columns = tensor.shape[1] / scale_block;
  for (std::int64_t row = 0; row < tensor.shape[0]; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      tensor.scales[formats::scale_offset(row, column, columns, tensor.scale_layout)] = codes.scale(random);
    }
  }
}

void store_scale(HostTensor& tensor, std::size_t index, float scale) {
  std::memcpy(&tensor.scales[index * sizeof scale], &scale, sizeof scale);
}

/// Scales of many magnitudes, whose root mean square is 1.
std::vector<float> random_fp8_scales(std::size_t count, Random& random) {
  constexpr int powers = 8;
  std::vector<float> scales(count);
  double squares = 0;
  for (float& scale : scales) {
    scale = static_cast<float>(std::ldexp(1 + random.uniform(), static_cast<int>(random.below(powers))));
    squares += static_cast<double>(scale) * scale / static_cast<double>(count);
  }
  for (float& scale : scales) {
    scale = static_cast<float>(scale / std::sqrt(squares));
  }
  return scales;
}

/// Any finite FP8 values.
void fill_fp8(HostTensor& tensor, float share, Random& random) {
  for (std::uint8_t& code : tensor.values) {
    const auto magnitude = static_cast<std::uint8_t>(random.below(0x7F));
    code = static_cast<std::uint8_t>(magnitude | (random.next() >> 63 << 7));
  }
  if (tensor.scales.empty()) {
    tensor.global_scales = {share};
    return;
  }
  const std::vector<float> scales = random_fp8_scales(tensor.scales.size() / sizeof(float), random);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    store_scale(tensor, i, share * scales[i]);
  }
}

/// The values an NVFP4 matrix of the same distribution would have, times `factor`, each rounded to the format.
void fill_rounded(HostTensor& tensor, const Codes& codes, float factor, Random& random) {
  float scale = 0;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (i % scale_block == 0) {
      scale = formats::e4m3_values[codes.scale(random)] * factor;
    }
    write_element(tensor, i, formats::e2m1_values[(random.next() >> 32) & codes.mask & 0xFU] * scale);
  }
}

/// full_range: `share` is the factor by which this operand brings gate and up to their standard deviation.
HostTensor coded_matrix(HostTensor tensor, const Codes& codes, double share, Random& random) {
  const auto factor = static_cast<float>(share);
  if (tensor.format == Format::nvfp4) {
    fill_nvfp4(tensor, codes, random);
    if (!codes.is_contest) {
      tensor.global_scales = {factor};
    }
  } else if (is_fp8(tensor.format) && !codes.is_contest) {
    fill_fp8(tensor, factor, random);
  } else {
    fill_rounded(tensor, codes, factor, random);
    for (std::size_t i = 0; i < tensor.scales.size() / sizeof(float); ++i) {
      store_scale(tensor, i, 1);
    }
  }
  return tensor;
}

void take(HostTensor& tensor, formats::Nvfp4Matrix quantised) {
  tensor.values = std::move(quantised.values);
  tensor.scales = std::move(quantised.scales);
  tensor.global_scales = {quantised.global_scale};
}

void take(HostTensor& tensor, formats::Fp8Matrix quantised) {
  tensor.values = std::move(quantised.values);
  if (tensor.scales.empty()) {
    tensor.global_scales = std::move(quantised.scales);
  } else {
    std::memcpy(tensor.scales.data(), quantised.scales.data(), tensor.scales.size());
  }
}

HostTensor normal_matrix(HostTensor tensor, double deviation, Random& random) {
  const auto draw = [&] { return static_cast<float>(deviation * random.normal()); };
  if (format_traits(tensor.format).bits == 16) {
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      write_element(tensor, i, draw());
    }
    return tensor;
  }
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  std::generate(values.begin(), values.end(), draw);
  const Tensor matrix = Tensor::contiguous(values.data(), Format::fp32, {tensor.shape[0], tensor.shape[1]});
  if (is_fp8(tensor.format)) {
    take(tensor, formats::quantize_fp8(matrix, tensor.name, tensor.format, tensor.role(), tensor.scale_layout));
  } else {
    take(tensor, formats::quantize_nvfp4(matrix, tensor.name, tensor.scale_layout));
  }
  return tensor;
}

/// Turns some scales negative, subnormal or 0, and in at most a quarter of the rows one into a NaN.
void strew_special_scales(HostTensor& tensor, Random& random) {
  constexpr std::array<std::uint8_t, 5> odd{0x80, 0x00, 0x01, 0x07, 0x85};
  const std::int64_t columns = tensor.shape[1] / scale_block;
  const auto scale = [&](std::int64_t row) -> std::uint8_t& {
    const auto column = random.index(columns);
    return tensor.scales[formats::scale_offset(row, column, columns, tensor.scale_layout)];
  };
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    scale(row) ^= 0x80U;
    scale(row) = odd[random.below(odd.size())];
  }
  for (std::int64_t count = 0; count < std::min<std::int64_t>(tensor.rows() / 4, 3); ++count) {
    const auto row = random.index(tensor.rows());
    scale(row) = count % 2 == 0 ? 0x7F : 0xFF;
  }
}

/// Turns some scales negative, subnormal or 0.
void strew_special_fp8_scales(HostTensor& tensor, Random& random) {
  constexpr std::array<float, 4> odd{-0.5F, 0.0F, 1e-40F, -1e-40F};
  const std::size_t count = tensor.scales.size() / sizeof(float);
  for (std::size_t i = 0; i < count / 8; ++i) {
    store_scale(tensor, random.below(count), odd[random.below(odd.size())]);
  }
}

/// e4m3 has no infinity: there a value is the greatest.
void strew_special_values(HostTensor& tensor, Random& random) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 4> odd{-0.0F, 0.0F, 6e-8F, -6e-8F};
  const std::array<float, 3> not_finite{infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  const auto place = [&](std::int64_t row) { return row * tensor.shape[1] + random.index(tensor.shape[1]); };
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    write_element(tensor, place(row), odd[random.below(odd.size())]);
  }
  for (std::int64_t count = 0; count < std::min<std::int64_t>(tensor.rows() / 4, 3); ++count) {
    const auto row = random.index(tensor.rows());
    write_element(tensor, place(row), not_finite[static_cast<std::size_t>(count)]);
  }
}

HostTensor special_matrix(HostTensor tensor, double deviation, Random& random) {
  tensor = normal_matrix(std::move(tensor), deviation, random);
  if (tensor.format == Format::nvfp4) {
    strew_special_scales(tensor, random);
    return tensor;
  }
  strew_special_values(tensor, random);
  if (is_fp8(tensor.format)) {
    strew_special_fp8_scales(tensor, random);
  }
  return tensor;
}

/// The root mean square of full_range values before they get their share.
double full_range_rms(Format format) { return is_fp8(format) ? e4m3_rms() : nvfp4_rms(); }

/// The factors that give gate and up of full_range their standard deviation. The product of both is deviation / (√K ·
/// rms of a · rms of b). 16-bit activations keep the values of the codes, which fp16 holds, and leave the rest to the
/// weights' scales where there are any.
struct Shares {
  double a;
  double b;
};

Shares full_range_shares(const DualGemmProblem& gemm) {
  const double product =
      gate_deviation / (std::sqrt(static_cast<double>(gemm.k)) * full_range_rms(gemm.a) * full_range_rms(gemm.b));
  const bool scaled_a = format_traits(gemm.a).bits < 16;
  const bool scaled_b = format_traits(gemm.b).bits < 16;
  if (scaled_a == scaled_b) {
    return {std::sqrt(product), std::sqrt(product)};
  }
  return scaled_b ? Shares{1, product} : Shares{product, 1};
}

}  // namespace

OperandSource::OperandSource(const DualGemmProblem& gemm, ScaleLayout layout, Distribution distribution,
                             std::uint64_t seed)
    : gemm_(gemm), layout_(layout), distribution_(distribution), random_(seed) {}

HostTensor OperandSource::draw(const std::string& name, std::int64_t rows) {
  const bool is_weight = name != "a";
  const double deviation = is_weight ? normal_gate_deviation / std::sqrt(static_cast<double>(gemm_.k)) : 1;
  const OperandRole role = is_weight ? OperandRole::weights : OperandRole::tokens;
  const Format format = is_weight ? gemm_.b : gemm_.a;
  HostTensor tensor = make_host_tensor(name, format, {rows, gemm_.k},
                                       may_lie(layout_, format, role) ? layout_ : ScaleLayout::row_major, role);
  switch (distribution_) {
    case Distribution::contest: return coded_matrix(std::move(tensor), contest_codes, 1, random_);
    case Distribution::full_range: {
      const Shares shares = full_range_shares(gemm_);
      return coded_matrix(std::move(tensor), full_range_codes, is_weight ? shares.b : shares.a, random_);
    }
    case Distribution::normal: return normal_matrix(std::move(tensor), deviation, random_);
    case Distribution::specials: return special_matrix(std::move(tensor), deviation, random_);
    case Distribution::integers: break;
  }
  return integer_matrix(std::move(tensor), random_);
}

std::vector<HostTensor> dual_gemm_inputs(const ProductTask& task, Distribution distribution, std::uint64_t seed) {
  const DualGemmProblem gemm = dual_gemm_of(task);
  OperandSource source(gemm, task.scale_layout, distribution,
                       derive_seed(seed, label_of(task) + " " + std::string(name(distribution))));
  std::vector<HostTensor> inputs;
  inputs.push_back(source.draw("a", gemm.m));
  inputs.push_back(source.draw("b1", gemm.n));
  inputs.push_back(source.draw("b2", gemm.n));
  return inputs;
}

std::vector<HostTensor> dual_gemm_activations(const ProductTask& task, Distribution distribution, std::uint64_t seed) {
  constexpr std::int64_t few_outputs = 64;
  ProductTask narrow = task;
  narrow.problem.n = std::min(narrow.problem.n, few_outputs);
  std::vector<HostTensor> tensors = dual_gemm_inputs(narrow, distribution, seed);
  std::erase_if(tensors, [](const HostTensor& tensor) { return tensor.is_weight; });
  return tensors;
}

}  // namespace thresher::arena
