#pragma once
// What the dual GEMM on tcgen05 computes, bit for bit: each instruction's product along K in order, added up where K is
// split, then the epilogue in float32. Written from the operands, not from what packing makes of them.
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/scales.hpp"
#include "machine/emulator/engine/tensor_arithmetic.hpp"
#include "strategies/gemm/device/activation.hpp"
#include "strategies/gemm/device/number_type.hpp"
#include "strategies/gemm/tcgen05/config.hpp"
#include "support/dual_gemm_case.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled::test {

/// A row's blocks of 64 along K, with the signs of its scales in its codes.
inline std::vector<emulator::Nvfp4Row> blocks_of_row(const Tensor& matrix, std::int64_t row) {
  const std::int64_t k = matrix.shape[1];
  const std::int64_t groups = k / formats::scale_block;
  const auto* all_scales = static_cast<const std::uint8_t*>(matrix.scales.data);
  std::vector<emulator::Nvfp4Row> blocks;
  for (std::int64_t first = 0; first < groups; first += emulator::nvfp4_scales) {
    std::uint8_t codes[emulator::nvfp4_k / 2] = {};
    std::uint8_t scales[emulator::nvfp4_scales] = {};
    for (std::int64_t g = first; g < groups && g < first + emulator::nvfp4_scales; ++g) {
      const std::uint8_t scale = all_scales[formats::scale_offset(row, g, groups, matrix.scales.layout)];
      scales[g - first] = scale;
      const auto* from = static_cast<const std::uint8_t*>(matrix.data) + row * matrix.strides[0] / 2 + g * 8;
      for (std::int64_t i = 0; i < 8; ++i) {
        codes[(g - first) * 8 + i] = static_cast<std::uint8_t>(from[i] ^ ((scale & 0x80U) != 0 ? 0x88U : 0U));
      }
    }
    blocks.push_back(emulator::nvfp4_row(codes, scales));
  }
  return blocks;
}

inline float sum(const std::vector<emulator::Nvfp4Row>& weight, const std::vector<emulator::Nvfp4Row>& token,
                 std::size_t first, std::size_t end) {
  std::uint32_t c = 0;
  for (std::size_t block = first; block < end && block < weight.size(); ++block) {
    c = emulator::nvfp4_dot(weight[block], token[block], c);
  }
  return machine::convert::bits_float(c);
}

inline float global_scale(const Tensor& matrix) { return matrix.global_scale == nullptr ? 1.0F : *matrix.global_scale; }

/// C's elements row by row, without gaps.
template <Config config>
std::vector<std::uint8_t> model(thresher::test::DualGemmCase& host) {
  const Tensor a = host.a.view();
  const Tensor gate = host.b1_gate.view();
  const Tensor up = host.b2_up.view();
  std::vector<std::vector<emulator::Nvfp4Row>> tokens;
  for (std::int64_t row = 0; row < host.problem.m; ++row) {
    tokens.push_back(blocks_of_row(a, row));
  }
  const std::size_t middle = config.split_k == 2 ? k_steps(static_cast<u32>(host.problem.k)) / 2 * slot_products : 0;
  const float gate_factor = global_scale(a) * global_scale(gate);
  const float up_factor = global_scale(a) * global_scale(up);
  constexpr std::size_t bytes = element_bytes(config.output);
  std::vector<std::uint8_t> c(static_cast<std::size_t>(host.problem.m * host.problem.n) * bytes);
  for (std::int64_t j = 0; j < host.problem.n; ++j) {
    const auto gate_row = blocks_of_row(gate, j);
    const auto up_row = blocks_of_row(up, j);
    for (std::int64_t i = 0; i < host.problem.m; ++i) {
      const auto whole = [&](const std::vector<emulator::Nvfp4Row>& weight) {
        const auto& token = tokens[static_cast<std::size_t>(i)];
        const float rest = sum(weight, token, middle, weight.size());
        return middle == 0 ? rest : sum(weight, token, 0, middle) + rest;
      };
      const float value = activate<config.activation>(whole(gate_row) * gate_factor, whole(up_row) * up_factor,
                                                      host.problem.activation);
      std::uint32_t word = machine::convert::float_bits(value);
      if constexpr (config.output != Number::fp32) {
        word = machine::convert::pack<typename NumberType<config.output>::type>(value, value);
      }
      std::memcpy(&c[static_cast<std::size_t>(i * host.problem.n + j) * bytes], &word, bytes);
    }
  }
  return c;
}

/// The same of C as it is.
inline std::vector<std::uint8_t> without_gaps(const Tensor& c) {
  const auto row_bytes = static_cast<std::size_t>(c.shape[1] * thresher::bits(c.format) / 8);
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(c.shape[0]) * row_bytes);
  for (std::int64_t i = 0; i < c.shape[0]; ++i) {
    std::memcpy(&rows[static_cast<std::size_t>(i) * row_bytes],
                static_cast<const std::uint8_t*>(c.data) + i * c.strides[0] * thresher::bits(c.format) / 8, row_bytes);
  }
  return rows;
}

}  // namespace thresher::strategies::gemm::tcgen05::block_scaled::test
