// The dual GEMM of 16-bit operands on tcgen05 run by the emulator, of one block and of pairs: right, clean, and bit for
// bit what the instructions' arithmetic gives.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "core/integers.hpp"
#include "machine/emulator/engine/tensor_arithmetic.hpp"
#include "reference/tolerance.hpp"
#include "strategies/direct_launch.hpp"
#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/device/kernel.hpp"
#include "support/dual_gemm_case.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit {
namespace {

using strategies::test::address_of;
using strategies::test::map_of;
using strategies::test::text_of;
using thresher::test::DualGemmCase;

DualGemmProblem problem_for(const Config& config, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = format_of(config.operand),
          .b = format_of(config.operand),
          .out = format_of(config.output),
          .activation = {.kind = static_cast<ActivationKind>(config.activation)}};
}

machine::TensorMap operand_map(const Config& config, const Tensor& tensor, u32 rows) {
  const auto element = config.operand == Number::bf16 ? machine::ElementType::bf16 : machine::ElementType::fp16;
  return map_of(tensor.data, element, machine::Swizzle::b128,
                {static_cast<u64>(tensor.shape[1]), static_cast<u64>(tensor.shape[0])},
                {static_cast<u64>(tensor.strides[0]) * 2}, {slot_k, rows});
}

Params params_for(const Config& config, DualGemmCase& host) {
  Params params{};
  params.gate = operand_map(config, host.b1_gate.view(), block_outputs);
  params.up = operand_map(config, host.b2_up.view(), block_outputs);
  params.tokens = operand_map(config, host.a.view(), loaded_tokens(config));
  const Tensor c = host.c.view();
  params.c = {address_of(c.data)};
  params.c_row_stride = static_cast<u64>(c.strides[0]);
  params.m = static_cast<u32>(host.problem.m);
  params.n = static_cast<u32>(host.problem.n);
  params.k_steps = static_cast<u32>(ceil_div(host.problem.k, slot_k));
  params.c_wide = params.n % 8 == 0 && c.strides[0] % 8 == 0 ? 1 : 0;
  params.token_tiles = static_cast<u32>(ceil_div(host.problem.m, config.block_tokens));
  params.output_tiles = static_cast<u32>(ceil_div(host.problem.n, tile_outputs(config)));
  params.alpha = host.problem.activation.alpha;
  params.limit = host.problem.activation.limit;
  params.up_offset = host.problem.activation.up_offset;
  return params;
}

template <Config config>
std::string run(DualGemmCase& host, std::uint64_t seed) {
  const Params params = params_for(config, host);
  host.c.poison();
  emulator::GlobalMemory memory;
  memory.add("gate", host.b1_gate.bytes().data(), host.b1_gate.bytes().size(), emulator::Use::input);
  memory.add("up", host.b2_up.bytes().data(), host.b2_up.bytes().size(), emulator::Use::input);
  memory.add("tokens", host.a.bytes().data(), host.a.bytes().size(), emulator::Use::earlier_input);
  memory.add("c", host.c.bytes().data(), host.c.bytes().size(), emulator::Use::output);
  constexpr u32 tiles_each = 3;  // of a persistent kernel's clusters: one more than there are accumulators
  const u32 tiles = params.token_tiles * params.output_tiles;
  emulator::LaunchShape shape;
  shape.cluster.x = static_cast<u32>(pipeline::cluster_blocks(shape_of(config)));
  shape.grid.x = (config.persistent ? std::max(tiles / tiles_each, 1U) : tiles) * shape.cluster.x;
  shape.block = static_cast<u32>(pipeline::threads(shape_of(config)));
  shape.dynamic_shared_bytes = static_cast<u32>(pipeline::shared_bytes(shape_of(config)));
  shape.after_earlier_grid = true;
  return text_of(
      emulator::launch(shape, strategies::test::options(seed), memory, [&params] { kernel<config>(params); }).findings);
}

/// What the instructions give for one output: their products along K in order, from `begin` to before `end`.
template <Config config>
float sum(const Tensor& weights, std::int64_t row, const Tensor& tokens, std::int64_t token, std::int64_t begin,
          std::int64_t end) {
  const emulator::TensorFormat format =
      config.operand == Number::bf16 ? emulator::tensor_bf16() : emulator::tensor_fp16();
  std::uint32_t c = 0;
  for (std::int64_t first = begin; first < end; first += product_k) {
    std::array<emulator::TensorElement, product_k> a{};
    std::array<emulator::TensorElement, product_k> b{};
    for (std::int64_t i = 0; i < product_k; ++i) {
      const auto code = [&](const Tensor& of, std::int64_t at) -> std::uint32_t {
        return first + i < of.shape[1] ? static_cast<const std::uint16_t*>(of.data)[at * of.strides[0] + first + i] : 0;
      };
      a[static_cast<std::size_t>(i)] = format.decode(code(weights, row));
      b[static_cast<std::size_t>(i)] = format.decode(code(tokens, token));
    }
    c = emulator::tensor_dot(a.data(), b.data(), product_k, format.fraction_bits, c);
  }
  return machine::convert::bits_float(c);
}

/// The same of all of K: each part of a split sums its slots, and the two sums are added.
template <Config config>
float whole_sum(const Tensor& weights, std::int64_t row, const Tensor& tokens, std::int64_t token) {
  const std::int64_t k = weights.shape[1];
  const std::int64_t middle = ceil_div(k, slot_k) / config.split_k * slot_k;
  if (config.split_k == 1) {
    return sum<config>(weights, row, tokens, token, 0, k);
  }
  return sum<config>(weights, row, tokens, token, 0, middle) + sum<config>(weights, row, tokens, token, middle, k);
}

template <Config config>
bool is_what_instructions_give(DualGemmCase& host) {
  const Tensor c = host.c.view();
  for (std::int64_t i = 0; i < host.problem.m; ++i) {
    for (std::int64_t j = 0; j < host.problem.n; ++j) {
      const float value = dual_gemm::activate<config.activation>(
          whole_sum<config>(host.b1_gate.view(), j, host.a.view(), i),
          whole_sum<config>(host.b2_up.view(), j, host.a.view(), i), host.problem.activation);
      std::uint32_t word = machine::convert::float_bits(value);
      if constexpr (config.output != Number::fp32) {
        word = machine::convert::pack<typename NumberType<config.output>::type>(value, value);
      }
      constexpr std::int64_t bytes = element_bytes(config.output);
      if (std::memcmp(&word, static_cast<const std::uint8_t*>(c.data) + (i * c.strides[0] + j) * bytes, bytes) != 0) {
        return false;
      }
    }
  }
  return true;
}

template <Config config>
std::string run_and_judge(DualGemmCase& host, std::uint64_t seed) {
  if (const std::string found = run<config>(host, seed); !found.empty()) {
    return found;
  }
  if (!host.c.gaps_intact()) {
    return "a gap between rows was written";
  }
  const reference::Verdict verdict = reference::judge_dual_gemm(
      host.problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
      reference::whole(host.problem), reference::Accumulation::float32_truncated);
  if (!verdict.passed) {
    return verdict.explain();
  }
  return is_what_instructions_give<config>(host) ? "" : "not what the instructions give";
}

constexpr std::array configs{
    Config{.blocks = 1, .block_tokens = 32, .stages = 3},
    Config{.operand = Number::fp16, .output = Number::fp16, .blocks = 2, .block_tokens = 64, .stages = 3},
    Config{
        .output = Number::fp32, .activation = ActivationCode::gelu_tanh, .blocks = 2, .block_tokens = 16, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 1,
           .block_tokens = 48,
           .stages = 2},
    Config{.blocks = 2, .block_tokens = 32, .stages = 2, .persistent = true},
    Config{.blocks = 1, .block_tokens = 32, .stages = 2, .split_k = 2},
    Config{.operand = Number::fp16, .output = Number::fp32, .blocks = 2, .block_tokens = 48, .stages = 3, .split_k = 2},
};
template <std::size_t index>
struct Chosen {
  static constexpr Config config = configs[index];
};
template <std::size_t... index>
::testing::Types<Chosen<index>...> chosen(std::index_sequence<index...>);
using AllChosen = decltype(chosen(std::make_index_sequence<configs.size()>()));

template <class Choice>
class EmulatedSixteenBit : public ::testing::Test {
 protected:
  static constexpr Config config = Choice::config;
  static void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t schedules) {
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      DualGemmCase host =
          DualGemmCase::random(problem_for(config, m, n, k), {.row_gap = 8, .out_row_gap = seed % 3 == 0 ? 0 : 8},
                               static_cast<unsigned>(seed + 1));
      ASSERT_EQ(run_and_judge<config>(host, seed), "") << m << "x" << n << "x" << k << ", seed " << seed;
    }
  }
};
TYPED_TEST_SUITE(EmulatedSixteenBit, AllChosen);

TYPED_TEST(EmulatedSixteenBit, OneTokenAndLittleOfK) {
  this->clean_and_right(1, 8, (TestFixture::config.split_k - 1) * slot_k + 8, 2);
}
TYPED_TEST(EmulatedSixteenBit, RaggedInEveryDimension) {
  this->clean_and_right(2 * TestFixture::config.block_tokens + 5, tile_outputs(TestFixture::config) + 11, 328, 2);
}
TYPED_TEST(EmulatedSixteenBit, ManySchedulesOfFewTiles) {
  this->clean_and_right(TestFixture::config.block_tokens, 24, 392, 12);
}

TEST(SixteenBit, TheLargestTile) {
  constexpr Config config{.blocks = 2, .block_tokens = 256, .stages = 3};
  DualGemmCase host = DualGemmCase::random(problem_for(config, 250, 264, 72));
  ASSERT_EQ(run_and_judge<config>(host, 1), "");
}

/// What lands of the other pair's sums, and the staging behind it, take more than the slots.
TEST(SixteenBit, TheLargestTileOfASplit) {
  constexpr Config config{.blocks = 2, .block_tokens = 256, .stages = 2, .split_k = 2};
  constexpr pipeline::TensorShape shape = shape_of(config);
  static_assert(pipeline::landing_bytes(shape) + staging_bytes(config) > pipeline::slots_bytes(shape));
  DualGemmCase host = DualGemmCase::random(problem_for(config, 250, 264, 200));
  ASSERT_EQ(run_and_judge<config>(host, 1), "");
}

}  // namespace
}  // namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit
