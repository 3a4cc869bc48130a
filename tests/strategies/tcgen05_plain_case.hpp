#pragma once
// The kernel of the dual GEMM of plain operands on tcgen05 in the emulator, without the strategy's plan, and what it
// must give bit for bit: each instruction's product along K in order, added up where K is split, then scales and
// activation in float32.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/integers.hpp"
#include "formats/elements.hpp"
#include "machine/emulator/engine/tensor_arithmetic.hpp"
#include "strategies/direct_launch.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/tcgen05/device/plain.hpp"

namespace thresher::strategies::gemm::tcgen05::test {

using strategies::test::address_of;
using strategies::test::map_of;

/// A call's tensors.
struct Operands {
  Tensor tokens;
  Tensor gate;
  Tensor up;
  Tensor c;
  Activation activation{};
};

inline std::size_t bytes_of(const Tensor& matrix) {
  return static_cast<std::size_t>((matrix.shape[0] - 1) * matrix.strides[0] + matrix.shape[1]) *
         static_cast<std::size_t>(thresher::bits(matrix.format)) / 8;
}

// --- the product

inline const float* scales_of(Scaling scaling, const Tensor& matrix) {
  return scaling == Scaling::none     ? nullptr
         : scaling == Scaling::tensor ? matrix.global_scale
                                      : static_cast<const float*>(matrix.scales.data);
}

inline machine::TensorMap operand_map(const Config& config, const Tensor& tensor, u32 rows) {
  return map_of(tensor.data, element_type(config.operand), machine::Swizzle::b128,
                {static_cast<u64>(tensor.shape[1]), static_cast<u64>(tensor.shape[0])},
                {static_cast<u64>(tensor.strides[0] * element_bytes(config.operand))}, {slot_k(config), rows});
}

inline DenseParams params_for(const Config& config, const Operands& call) {
  DenseParams params{};
  params.gate = operand_map(config, call.gate, block_rows);
  params.up = operand_map(config, call.up, block_rows);
  params.tokens = operand_map(config, call.tokens, loaded_tokens(config));
  params.token_scales = {address_of(scales_of(config.token_scaling, call.tokens))};
  params.gate_scales = {address_of(scales_of(config.weight_scaling, call.gate))};
  params.up_scales = {address_of(scales_of(config.weight_scaling, call.up))};
  params.c = {address_of(call.c.data)};
  params.c_row_stride = static_cast<u64>(call.c.strides[0]);
  params.m = static_cast<u32>(call.tokens.shape[0]);
  params.n = static_cast<u32>(call.gate.shape[0]);
  params.k_steps = static_cast<u32>(ceil_div(call.gate.shape[1], slot_k(config)));
  params.c_wide = params.n % 8 == 0 && call.c.strides[0] % 8 == 0 ? 1 : 0;
  params.token_tiles = static_cast<u32>(ceil_div(params.m, config.block_tokens));
  params.output_tiles = static_cast<u32>(ceil_div(params.n, tile_outputs(config)));
  params.alpha = call.activation.alpha;
  params.limit = call.activation.limit;
  params.up_offset = call.activation.up_offset;
  return params;
}

inline void add_operand(emulator::GlobalMemory& memory, const std::string& name, const Tensor& matrix, Scaling scaling,
                        emulator::Use use) {
  memory.add(name, matrix.data, bytes_of(matrix), use);
  if (const float* scales = scales_of(scaling, matrix)) {
    const std::int64_t count = scaling == Scaling::row ? matrix.shape[0] : 1;
    memory.add(name + " scales", scales, static_cast<std::size_t>(count) * sizeof(float), use);
  }
}

/// What the emulator finds wrong with it; empty when nothing is.
template <Config config>
std::string run(const Operands& call, std::uint64_t seed) {
  const DenseParams params = params_for(config, call);
  emulator::GlobalMemory memory;
  add_operand(memory, "gate", call.gate, config.weight_scaling, emulator::Use::input);
  add_operand(memory, "up", call.up, config.weight_scaling, emulator::Use::input);
  add_operand(memory, "tokens", call.tokens, config.token_scaling, emulator::Use::earlier_input);
  memory.add("c", call.c.data, bytes_of(call.c), emulator::Use::output);
  constexpr u32 tiles_each = 3;  // of a persistent kernel's clusters: one more than there are accumulators
  const u32 tiles = params.token_tiles * params.output_tiles;
  emulator::LaunchShape shape;
  shape.cluster.x = static_cast<u32>(pipeline::cluster_blocks(shape_of(config)));
  shape.grid.x = (config.persistent ? std::max(tiles / tiles_each, 1U) : tiles) * shape.cluster.x;
  shape.block = static_cast<u32>(pipeline::threads(shape_of(config)));
  shape.dynamic_shared_bytes = static_cast<u32>(pipeline::shared_bytes(shape_of(config)));
  shape.after_earlier_grid = true;
  return strategies::test::text_of(
      emulator::launch(shape, strategies::test::options(seed), memory, [&params] { kernel<config>(params); }).findings);
}

// --- the model

inline emulator::TensorFormat tensor_format(Number operand) {
  return operand == Number::bf16   ? emulator::tensor_bf16()
         : operand == Number::fp16 ? emulator::tensor_fp16()
                                   : emulator::tensor_e4m3();
}

inline std::uint32_t element_code(const Tensor& matrix, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * matrix.strides[0] + column;
  return thresher::bits(matrix.format) == 8 ? static_cast<const std::uint8_t*>(matrix.data)[at]
                                            : static_cast<const std::uint16_t*>(matrix.data)[at];
}

/// What the instructions give for one output from `begin` to before `end` along K.
template <Config config>
float part_of_sum(const Tensor& weights, std::int64_t row, const Tensor& tokens, std::int64_t token, std::int64_t begin,
                  std::int64_t end) {
  const emulator::TensorFormat format = tensor_format(config.operand);
  constexpr std::int64_t together = product_k(config);
  std::uint32_t c = 0;
  for (std::int64_t first = begin; first < end; first += together) {
    std::array<emulator::TensorElement, together> a{};
    std::array<emulator::TensorElement, together> b{};
    for (std::int64_t i = 0; i < together; ++i) {
      const bool is_there = first + i < weights.shape[1];
      a[static_cast<std::size_t>(i)] = format.decode(is_there ? element_code(weights, row, first + i) : 0);
      b[static_cast<std::size_t>(i)] = format.decode(is_there ? element_code(tokens, token, first + i) : 0);
    }
    c = emulator::tensor_dot(a.data(), b.data(), static_cast<u32>(together), format.fraction_bits, c);
  }
  return machine::convert::bits_float(c);
}

/// The same of all of K: each part of a split sums its slots, and the two sums are added.
template <Config config>
float sum(const Tensor& weights, std::int64_t row, const Tensor& tokens, std::int64_t token) {
  const std::int64_t k = weights.shape[1];
  const std::int64_t middle = ceil_div(k, slot_k(config)) / config.split_k * slot_k(config);
  return config.split_k == 1 ? part_of_sum<config>(weights, row, tokens, token, 0, k)
                             : part_of_sum<config>(weights, row, tokens, token, 0, middle) +
                                   part_of_sum<config>(weights, row, tokens, token, middle, k);
}

inline float scaled(float value, Scaling scaling, const Tensor& matrix, std::int64_t row) {
  const float* scales = scales_of(scaling, matrix);
  return scales == nullptr ? value : value * scales[scaling == Scaling::row ? row : 0];
}

template <Config config>
float scaled_sum(const Operands& call, const Tensor& weights, std::int64_t row, std::int64_t token) {
  const float own = scaled(sum<config>(weights, row, call.tokens, token), config.weight_scaling, weights, row);
  return scaled(own, config.token_scaling, call.tokens, token);
}

template <Config config>
bool is_what_instructions_give(const Operands& call) {
  for (std::int64_t i = 0; i < call.c.shape[0]; ++i) {
    for (std::int64_t j = 0; j < call.c.shape[1]; ++j) {
      const float value = activate<config.activation>(scaled_sum<config>(call, call.gate, j, i),
                                                      scaled_sum<config>(call, call.up, j, i), call.activation);
      if (std::isnan(value) && std::isnan(formats::element(call.c, i, j))) {
        continue;  // whatever its sign
      }
      std::uint32_t word = machine::convert::float_bits(value);
      if constexpr (config.output != Number::fp32) {
        word = machine::convert::pack<typename NumberType<config.output>::type>(value, value);
      }
      constexpr std::int64_t bytes = element_bytes(config.output);
      const auto* written = static_cast<const std::uint8_t*>(call.c.data) + (i * call.c.strides[0] + j) * bytes;
      if (std::memcmp(&word, written, bytes) != 0) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace thresher::strategies::gemm::tcgen05::test
