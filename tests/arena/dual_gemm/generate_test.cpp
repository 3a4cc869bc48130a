#include "arena/gemm/generate.hpp"
#include "arena/operations.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "arena/operation/operation.hpp"
#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "reference/products.hpp"

namespace thresher::arena {
namespace {

Problem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, Format a, Format b) {
  return arena::problem_of(DualGemmProblem{m, n, k, a, b, Format::fp16, {}});
}

struct Deviations {
  double gate = 0;
  double up = 0;
  double min_gate = 1e300;
  double worst_fraction = 0;
};

Deviations deviations(const Problem& problem, Distribution distribution) {
  const auto inputs = dual_gemm_inputs(problem.as<ProductTask>(), distribution, 3);
  const DualGemmProblem gemm = dual_gemm(problem);
  Deviations result;
  reference::products(inputs[0].view(), inputs[1].view(), inputs[2].view(), reference::whole(gemm),
                      reference::Accumulation::float64, 1, [&](std::size_t, std::size_t, double gate, double up) {
                        result.gate += gate * gate / static_cast<double>(gemm.m * gemm.n);
                        result.up += up * up / static_cast<double>(gemm.m * gemm.n);
                        result.min_gate = std::min(result.min_gate, gate);
                        result.worst_fraction = std::max(
                            {result.worst_fraction, std::abs(gate - std::round(gate)), std::abs(up - std::round(up))});
                      });
  result.gate = std::sqrt(result.gate);
  result.up = std::sqrt(result.up);
  return result;
}

TEST(Generate, FullRangeGivesGateAndUpADeviationNearFour) {
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      const std::int64_t k = a == Format::fp8_block || b == Format::fp8_block ? 8192 : 1024;  // so many scales along K
      const Deviations found = deviations(problem_of(64, 96, k, a, b), Distribution::full_range);
      EXPECT_NEAR(found.gate, 4, 0.6) << name(a) << " " << name(b);
      EXPECT_NEAR(found.up, 4, 0.6) << name(a) << " " << name(b);
    }
  }
}

TEST(Generate, FullRangeHoldsEveryCodeAndEveryFiniteScale) {
  const auto inputs = dual_gemm_inputs(problem_of(64, 96, 1024, Format::nvfp4, Format::nvfp4).as<ProductTask>(),
                                       Distribution::full_range, 3);
  for (const HostTensor& tensor : inputs) {
    std::set<int> codes;
    for (const std::uint8_t byte : tensor.values) {
      codes.insert({byte & 0xF, byte >> 4});
    }
    const std::set<int> scales(tensor.scales.begin(), tensor.scales.end());
    EXPECT_EQ(codes.size(), 16U) << tensor.name;
    EXPECT_EQ(scales.size(), 0x7FU) << tensor.name;
    EXPECT_EQ(*scales.rbegin(), 0x7E);
  }
}

TEST(Generate, FullRangeOfFp8HoldsEveryFiniteCodeAndScalesOfManyMagnitudes) {
  for (const Format format : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block}) {
    const auto inputs =
        dual_gemm_inputs(problem_of(256, 1024, 1024, format, format).as<ProductTask>(), Distribution::full_range, 3);
    for (const HostTensor& tensor : inputs) {
      const std::set<std::uint8_t> codes(tensor.values.begin(), tensor.values.end());
      EXPECT_EQ(codes.size(), 254U) << name(format) << tensor.name;
      EXPECT_FALSE(codes.contains(0x7F) || codes.contains(0xFF)) << name(format) << tensor.name;
      std::set<int> magnitudes;
      for (std::size_t i = 0; i < tensor.scales.size(); i += sizeof(float)) {
        float scale;
        std::memcpy(&scale, &tensor.scales[i], sizeof scale);
        magnitudes.insert(std::ilogb(scale));
      }
      EXPECT_EQ(tensor.scales.size(), scale_bytes(tensor.view())) << name(format) << tensor.name;
      EXPECT_EQ(magnitudes.size() >= 6, format != Format::fp8_tensor) << name(format) << tensor.name;
      EXPECT_EQ(tensor.global_scales.size(), format == Format::fp8_tensor ? 1U : 0U) << tensor.name;
    }
  }
}

/// A turned tensor is one whose row r is the row r + shift of before, its scale included; weights in blocks turn the
/// scales of whole blocks.
TEST(Generate, TurnedRowsTakeTheirScalesAlong) {
  for (const auto& [format, layout] : {std::pair{Format::fp8_row, ScaleLayout::row_major},
                                       {Format::fp8_block, ScaleLayout::row_major},
                                       {Format::fp8_block, ScaleLayout::column_major},
                                       {Format::nvfp4, ScaleLayout::row_major},
                                       {Format::nvfp4, ScaleLayout::blocked}}) {
    const DualGemmProblem problem{.m = 37, .n = 256, .k = 272, .a = format, .b = format};
    const auto inputs = dual_gemm_inputs(dense_task(problem, layout), Distribution::full_range, 3);
    for (const HostTensor& tensor : inputs) {
      const std::int64_t shift = tensor.is_weight ? 128 : 5;
      const HostTensor turned = rotate_rows(tensor, shift);
      for (std::int64_t row = 0; row < tensor.rows(); ++row) {
        for (const std::int64_t column : {0, 127, 128, 271}) {
          const std::int64_t from = (row + shift) % tensor.rows();
          ASSERT_EQ(formats::element(turned.view(), row, column), formats::element(tensor.view(), from, column))
              << name(format) << " " << name(layout) << " " << tensor.name << row;
        }
      }
    }
  }
}

TEST(Generate, ContestMagnitudesReachOneAndAHalfAndScalesOne) {
  const auto inputs = dual_gemm_inputs(problem_of(64, 96, 1024, Format::nvfp4, Format::nvfp4).as<ProductTask>(),
                                       Distribution::contest, 3);
  for (const HostTensor& tensor : inputs) {
    float largest = 0;
    int negative = 0;
    for (const std::uint8_t byte : tensor.values) {
      for (const int code : {byte & 0xF, byte >> 4}) {
        largest = std::max(largest, std::abs(formats::e2m1_values[static_cast<std::size_t>(code)]));
        negative += code >> 3;
      }
    }
    EXPECT_EQ(largest, 1.5F);
    EXPECT_NEAR(negative, static_cast<double>(tensor.values.size()), 0.05 * static_cast<double>(tensor.values.size()));
    double mean = 0;
    for (const std::uint8_t scale : tensor.scales) {
      EXPECT_LE(formats::e4m3_values[scale], 1.0F);
      mean += formats::e4m3_values[scale] / static_cast<double>(tensor.scales.size());
    }
    EXPECT_NEAR(mean, 0.5, 0.02);
    EXPECT_TRUE(tensor.global_scales.empty());
  }
}

TEST(Generate, IntegersAreIntegersAndTheirGatesLarge) {
  for (const std::int64_t k : {16, 32, 48, 80, 1040}) {
    for (const Format format : operand_formats) {
      const Deviations found = deviations(problem_of(33, 40, k, format, format), Distribution::integers);
      EXPECT_EQ(found.worst_fraction, 0) << k;
      EXPECT_GE(found.min_gate, integer_gate_floor) << k;
      EXPECT_LT(found.gate * found.up, 65504) << k;
    }
  }
  EXPECT_GE(deviations(problem_of(3, 24, 8, Format::bf16, Format::bf16), Distribution::integers).min_gate,
            integer_gate_floor);
}

TEST(Generate, SpecialsAreStrewnInAndLeaveMostRowsFinite) {
  for (const Format format : operand_formats) {
    const Problem problem = problem_of(64, 96, 208, format, format);
    const auto inputs = dual_gemm_inputs(problem.as<ProductTask>(), Distribution::specials, 3);
    int finite = 0;
    reference::products(inputs[0].view(), inputs[1].view(), inputs[2].view(), reference::whole(dual_gemm(problem)),
                        reference::Accumulation::float64, 1, [&](std::size_t, std::size_t, double gate, double up) {
                          finite += std::isfinite(gate) && std::isfinite(up) ? 1 : 0;
                        });
    EXPECT_LT(finite, 64 * 96) << name(format);
    EXPECT_GT(finite, 64 * 96 / 2) << name(format);
  }
}

TEST(Generate, TheSeedDecidesEverything) {
  const Problem problem = problem_of(5, 7, 32, Format::nvfp4, Format::fp16);
  for (const Distribution distribution : all_distributions) {
    const auto one = dual_gemm_inputs(problem.as<ProductTask>(), distribution, 9);
    const auto same = dual_gemm_inputs(problem.as<ProductTask>(), distribution, 9);
    const auto other = dual_gemm_inputs(problem.as<ProductTask>(), distribution, 10);
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].values, same[i].values);
      EXPECT_EQ(one[i].scales, same[i].scales);
      EXPECT_NE(one[i].values, other[i].values);
    }
  }
}

TEST(Generate, VariationsTurnRowsWithTheirScales) {
  Problem problem = problem_of(5, 200, 32, Format::nvfp4, Format::nvfp4);
  const Operation& operation = find_operation("dual_gemm");
  const auto plain = operation.inputs(problem, Distribution::contest, 9);
  const auto varied = operation.variation(plain, 3);
  EXPECT_EQ(varied[1].shape, plain[1].shape);
  // b1 turns by 3 rows for each set, so set 3 starts with row 9.
  EXPECT_TRUE(std::equal(varied[1].values.begin(), varied[1].values.begin() + 16, plain[1].values.begin() + 9 * 16));
  EXPECT_TRUE(std::equal(varied[1].scales.begin(), varied[1].scales.begin() + 2, plain[1].scales.begin() + 9 * 2));
  problem.as<ProductTask>().scale_layout = ScaleLayout::blocked;
  const auto blocked = operation.inputs(problem, Distribution::contest, 9);
  const auto blocked_varied = operation.variation(blocked, 3);
  EXPECT_EQ(blocked_varied[1].scales.size(), blocked[1].scales.size());
  EXPECT_EQ(blocked_varied[1].scales[0], blocked[1].scales[9 * 16]);
}

}  // namespace
}  // namespace thresher::arena
