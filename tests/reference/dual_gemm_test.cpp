#include "reference/dual_gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/numbers.hpp"
#include "reference/activation.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// An owned fp16 matrix.
struct Half {
  std::vector<std::uint16_t> patterns;
  Tensor view;

  Half(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) {
    for (const float value : values) {
      patterns.push_back(formats::float_to_fp16(value));
    }
    view = Tensor::contiguous(patterns.data(), Format::fp16, {rows, columns});
  }
};

double one_element(float a, float gate_weight, float up_weight, const Activation& activation = {}) {
  const DualGemmProblem problem{.m = 1, .n = 1, .k = 1, .activation = activation};
  const Half x(1, 1, {a});
  const Half b1(1, 1, {gate_weight});
  const Half b2(1, 1, {up_weight});
  return dual_gemm(problem, x.view, b1.view, b2.view).at(0);
}

TEST(DualGemmDefinition, TheFirstProductIsTheGate) {
  // gate = 2, up = 3: silu(2)·3, not silu(3)·2.
  const double silu_of_2 = 2.0 / (1.0 + std::exp(-2.0));
  EXPECT_DOUBLE_EQ(one_element(1.0F, 2.0F, 3.0F), silu_of_2 * 3.0);
  const double silu_of_3 = 3.0 / (1.0 + std::exp(-3.0));
  EXPECT_DOUBLE_EQ(one_element(1.0F, 3.0F, 2.0F), silu_of_3 * 2.0);
}

TEST(DualGemmDefinition, RowsOfBAreColumnsOfC) {
  const DualGemmProblem problem{.m = 2, .n = 3, .k = 2};
  const Half a(2, 2, {1, 2, 3, 4});
  const Half b1(3, 2, {1, 0, 0, 1, 1, 1});
  const Half b2(3, 2, {1, 1, 2, 0, 0, 3});
  const double gates[2][3] = {{1, 2, 3}, {3, 4, 7}};
  const double ups[2][3] = {{3, 2, 6}, {7, 6, 12}};
  const std::vector<double> c = dual_gemm(problem, a.view, b1.view, b2.view);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      const double gate = gates[row][column];
      EXPECT_DOUBLE_EQ(c[row * 3 + column], gate / (1.0 + std::exp(-gate)) * ups[row][column]);
    }
  }
}

TEST(DualGemmDefinition, GlobalScalesMultiplyTheProductsBeforeTheActivation) {
  std::vector<std::uint8_t> ones(8, 0x22);
  const std::vector<std::uint8_t> scale{0x38};
  const float g = 0.125F;
  const Tensor a = Tensor::nvfp4(ones.data(), scale.data(), 1, 16, &g);
  const Tensor b1 = Tensor::nvfp4(ones.data(), scale.data(), 1, 16, &g);
  const Tensor b2 = Tensor::nvfp4(ones.data(), scale.data(), 1, 16);
  const DualGemmProblem problem{.m = 1, .n = 1, .k = 16, .a = Format::nvfp4, .b = Format::nvfp4};
  const double gate = 16.0 / 64.0;
  EXPECT_DOUBLE_EQ(dual_gemm(problem, a, b1, b2).at(0), gate / (1.0 + std::exp(-gate)) * 2.0);
}

TEST(DualGemmDefinition, ActivationsFollowTheirFormulas) {
  const Activation gelu{.kind = ActivationKind::gelu_tanh};
  EXPECT_NEAR(one_element(1.0F, 1.0F, 2.0F, gelu), 0.84119199060827676 * 2.0, 1e-14);
  EXPECT_NEAR(one_element(1.0F, -0.5F, 1.0F, gelu), -0.15428599017485606, 1e-14);
  EXPECT_NEAR(one_element(1.0F, -8.0F, 1.0F, gelu) / -3.1077829375011112e-21, 1.0, 1e-12);  // 1 + tanh would be 0 here

  const Activation clamped{.kind = ActivationKind::swiglu_clamped};
  const double alpha = static_cast<double>(1.702F);
  EXPECT_DOUBLE_EQ(one_element(1.0F, 2.0F, 3.0F, clamped), 2.0 / (1.0 + std::exp(-alpha * 2.0)) * 4.0);
  EXPECT_DOUBLE_EQ(one_element(1.0F, 20.0F, 30.0F, clamped), 7.0 / (1.0 + std::exp(-alpha * 7.0)) * 8.0);
  EXPECT_DOUBLE_EQ(one_element(1.0F, -20.0F, -30.0F, clamped), -20.0 / (1.0 + std::exp(alpha * 20.0)) * -6.0);

  // By another program: 4·tanh(0.5)·σ(2) · 25·tanh(0.12), and far beyond both limits.
  const Activation situ = usual_activation(ActivationKind::situ);
  EXPECT_NEAR(one_element(1.0F, 2.0F, 3.0F, situ), 4.861066551249867, 1e-12);
  EXPECT_NEAR(one_element(1.0F, -2.0F, 3.0F, situ), -0.6578738185454248, 1e-12);
  EXPECT_NEAR(one_element(1.0F, 2000.0F, -3000.0F, situ), -100.0, 1e-9);

  const Activation squared{.kind = ActivationKind::relu2};
  EXPECT_EQ(output_element(3.0, 7.0, squared), 9.0);  // without up
  EXPECT_EQ(output_element(-3.0, 7.0, squared), 0.0);
  EXPECT_EQ(output_element(3.0, 7.0, squared, 0.5), 4.5);
}

TEST(DualGemmDefinition, NonFiniteValuesGoWhereFloat32SendsThem) {
  EXPECT_TRUE(std::isnan(one_element(1.0F, -inf, 1.0F)));  // silu(-Inf) = -Inf · 0
  EXPECT_EQ(one_element(1.0F, inf, 1.0F), std::numeric_limits<double>::infinity());
  EXPECT_EQ(one_element(1.0F, inf, -1.0F), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(one_element(1.0F, 0.0F, inf)));  // 0 · Inf
  EXPECT_TRUE(std::isnan(one_element(nan, 1.0F, 1.0F)));
  EXPECT_TRUE(std::isnan(one_element(1.0F, nan, 0.0F)));
  EXPECT_TRUE(std::isnan(one_element(1.0F, -60000.0F, inf)));  // σ is 0 in float32, so 0 · Inf

  const Activation gelu{.kind = ActivationKind::gelu_tanh};
  EXPECT_TRUE(std::isnan(one_element(1.0F, -inf, 1.0F, gelu)));
  EXPECT_EQ(one_element(1.0F, inf, 1.0F, gelu), std::numeric_limits<double>::infinity());

  const Activation clamped{.kind = ActivationKind::swiglu_clamped};
  EXPECT_TRUE(std::isnan(one_element(1.0F, nan, 1.0F, clamped)));
  EXPECT_TRUE(std::isnan(one_element(1.0F, 1.0F, nan, clamped)));
  EXPECT_TRUE(std::isnan(one_element(1.0F, -inf, 1.0F, clamped)));
  EXPECT_DOUBLE_EQ(one_element(1.0F, inf, inf, clamped), one_element(1.0F, 7.0F, 7.0F, clamped));

  const Activation situ = usual_activation(ActivationKind::situ);
  EXPECT_TRUE(std::isnan(one_element(1.0F, nan, 1.0F, situ)));
  EXPECT_TRUE(std::isnan(one_element(1.0F, 1.0F, nan, situ)));
  EXPECT_EQ(one_element(1.0F, -inf, 1.0F, situ), 0.0);
  EXPECT_DOUBLE_EQ(one_element(1.0F, inf, inf, situ), 100.0);

  const Activation squared{.kind = ActivationKind::relu2};
  EXPECT_TRUE(std::isnan(output_element(std::numeric_limits<double>::quiet_NaN(), 0.0, squared)));
  EXPECT_EQ(output_element(-std::numeric_limits<double>::infinity(), 0.0, squared), 0.0);
  EXPECT_EQ(output_element(1e30, 0.0, squared), std::numeric_limits<double>::infinity());  // beyond float32
}

TEST(DualGemmDefinition, AGateBeyondFloat32IsInfinite) {
  std::vector<std::uint16_t> big{formats::float_to_bf16(-1e30F)};
  std::vector<std::uint16_t> one{formats::float_to_bf16(1.0F)};
  const Tensor a = Tensor::contiguous(big.data(), Format::bf16, {1, 1});
  const Tensor b2 = Tensor::contiguous(one.data(), Format::bf16, {1, 1});
  const DualGemmProblem problem{.m = 1, .n = 1, .k = 1, .a = Format::bf16, .b = Format::bf16};
  EXPECT_EQ(dual_gemm(problem, a, a, b2).at(0), -std::numeric_limits<double>::infinity());  // silu(1e60) · -1e30
}

TEST(DualGemmDefinition, NoRowsGiveAnEmptyResult) {
  const DualGemmProblem problem{.m = 0, .n = 1, .k = 1};
  const Half b(1, 1, {1.0F});
  EXPECT_TRUE(dual_gemm(problem, Tensor::contiguous(nullptr, Format::fp16, {0, 1}), b.view, b.view).empty());
}

TEST(DualGemmDefinition, OperandsThatDisagreeWithTheProblemAreRefused) {
  const DualGemmProblem problem{.m = 1, .n = 2, .k = 1};
  const Half a(1, 1, {1.0F});
  const Half b(2, 1, {1.0F, 2.0F});
  EXPECT_NO_THROW((void)dual_gemm(problem, a.view, b.view, b.view));
  EXPECT_THROW((void)dual_gemm(problem, a.view, b.view, a.view), Error);
  EXPECT_THROW((void)dual_gemm(problem, b.view, b.view, b.view), Error);
}

}  // namespace
}  // namespace thresher::reference
