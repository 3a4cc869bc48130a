// Quantization of tokens on the emulator: the definition bit by bit, and nothing beside it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "emulated_case.hpp"
#include "formats/numbers.hpp"
#include "formats/quantize_row.hpp"
#include "strategies/gemm/device/quantize_rows.hpp"
#include "strategies/quantize/call.hpp"
#include "support/quantize_case.hpp"

namespace thresher::strategies::quantize {
namespace {

using test::QuantizeCase;
using test::QuantizeLayout;

/// Returns the emulator's findings, or what the kernel wrote that is not by the definition; empty when nothing is.
std::string fault(QuantizeCase& host, std::uint64_t seed) {
  std::string found;
  const std::string wrong = host.fault_after([&] {
    emulator::Options options;
    options.schedule = emulator::Schedule::from_seed(seed);
    EmulatedCall call(quantize_call(host.problem, DeviceKind::cuda), {{"x", host.x}, {"out", host.out}},
                      test::compiled_in_kernel);
    for (const emulator::Finding& finding : call.run(options).findings) {
      found += to_string(finding);
    }
  });
  return found.empty() ? wrong : found;
}

/// Rows of less than a piece, of several pieces, and of a part of a block or of a span at their end.
TEST(EmulatedQuantize, GivesTheBitsOfTheDefinition) {
  std::uint64_t seed = 0;
  for (const Format x : {Format::fp16, Format::bf16}) {
    for (const Format out : {Format::fp8_block, Format::fp8_row}) {
      for (const std::int64_t columns : {16, 384, 528, 1296}) {
        QuantizeCase host({.rows = 9, .columns = columns, .x = x, .out = out});
        EXPECT_EQ(fault(host, ++seed), "") << name(x) << " " << name(out) << " " << columns;
      }
    }
  }
}

/// Rows with gaps begin on 2 bytes alone.
TEST(EmulatedQuantize, RowsMayLieApartAndScalesInColumns) {
  for (const bool powers_of_two : {false, true}) {
    for (const std::int64_t gap : {0, 3, 8}) {
      QuantizeCase host({.rows = 14, .columns = 272},
                        {.scales = ScaleLayout::column_major, .powers_of_two = powers_of_two, .gap = gap});
      EXPECT_EQ(fault(host, 5), "") << powers_of_two << gap;
      QuantizeCase rows({.rows = 14, .columns = 272, .x = Format::fp16, .out = Format::fp8_row},
                        {.powers_of_two = powers_of_two, .gap = gap});
      EXPECT_EQ(fault(rows, 6), "") << powers_of_two << gap;
    }
  }
}

TEST(EmulatedQuantize, TakesFewerRowsThanPlanned) {
  QuantizeCase host({.rows = 8, .columns = 256});
  host.x.shape[0] = host.out.shape[0] = 3;
  EXPECT_EQ(fault(host, 1), "");
}

/// Every mantissa of amax, with the exponents at both ends, in the middle and around the lift.
TEST(EmulatedQuantize, FastDivisionRoundsAsDivisionDoes) {
  std::int64_t wrong = 0;
  const auto compare = [&](float value, float scale, const gemm::FastDivision& by) {
    wrong += formats::float_to_e4m3(value / scale) != formats::float_to_e4m3(by(value)) ? 1 : 0;
  };
  const auto compare_all = [&](std::uint32_t amax, std::uint32_t mantissas, auto number) {
    const float scale = formats::quantized_fp8_scale(number(amax), false);
    const gemm::FastDivision by(scale);
    for (std::uint32_t bits = amax > 20 * mantissas ? amax - 20 * mantissas : 0; bits <= amax; ++bits) {
      compare(number(bits), scale, by);
      compare(-number(bits), scale, by);
    }
  };
  const auto half = [](std::uint32_t bits) { return formats::fp16_to_float(static_cast<std::uint16_t>(bits)); };
  const auto bfloat16 = [](std::uint32_t bits) { return formats::bf16_to_float(static_cast<std::uint16_t>(bits)); };
  for (const std::uint32_t first : {0U, 10U * 128, 11U * 128, 66U * 128, 67U * 128, 127U * 128, 254U * 128}) {
    for (std::uint32_t amax = first; amax <= first + 128; ++amax) {
      compare_all(amax, 128, bfloat16);
    }
  }
  for (std::uint32_t amax = 15 * 1024; amax < 16 * 1024; amax += 7) {
    compare_all(amax, 1024, half);
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace thresher::strategies::quantize
