// Global scales, activations and rounding, on every instruction set.
#include "cpu/finish.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "cpu/every_target.hpp"
#include "formats/numbers.hpp"
#include "reference/activation.hpp"

namespace thresher::cpu {
namespace {

using test::on_every_target;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

const std::array activations{
    Activation{.kind = ActivationKind::silu},
    Activation{.kind = ActivationKind::gelu_tanh},
    Activation{.kind = ActivationKind::swiglu_clamped},
    Activation{.kind = ActivationKind::swiglu_clamped, .alpha = -0.5F, .limit = 100.0F, .up_offset = 0.0F},
    usual_activation(ActivationKind::situ),
    Activation{.kind = ActivationKind::situ, .alpha = 0.5F, .limit = 100.0F},
    Activation{.kind = ActivationKind::relu2},
};

/// Numbers of all sizes and both signs, zeros, Inf and NaN.
std::vector<float> telling_values() {
  std::vector<float> values{0.0F, inf, nan, 7.0F, 88.5F, 89.0F, 104.0F, 3e38F, 1e-40F};
  for (float value = 1e-6F; value < 1e6F; value *= 1.7F) {
    values.push_back(value);
  }
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) {
    values.push_back(-values[i]);
  }
  return values;
}

/// Every pair of them.
struct Pairs {
  std::vector<float> gate;
  std::vector<float> up;

  Pairs() {
    for (const float g : telling_values()) {
      for (const float u : telling_values()) {
        gate.push_back(g);
        up.push_back(u);
      }
    }
  }
};

TEST(CpuFinish, ActivationsFollowTheDefinition) {
  on_every_target([] {
    const Pairs pairs;
    const std::size_t count = pairs.gate.size();
    std::vector<float> out(count);
    for (const Activation& activation : activations) {
      finish_row({activation, 1.0, 1.0}, pairs.gate.data(), pairs.up.data(), static_cast<std::int64_t>(count),
                 Format::fp32, out.data());
      for (std::size_t i = 0; i < count; ++i) {
        const double expected = reference::output_element(pairs.gate[i], pairs.up[i], activation);
        const float in_float32 = reference::activate(pairs.gate[i], pairs.up[i], activation);
        const double plain_error = std::fabs(static_cast<double>(in_float32) - expected);
        const double ulp = std::fabs(expected) * 0x1p-23 + 0x1p-149;
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(out[i])) << pairs.gate[i] << ", " << pairs.up[i] << " gave " << out[i];
        } else if (std::isinf(expected)) {
          ASSERT_EQ(out[i], expected) << pairs.gate[i] << ", " << pairs.up[i];
        } else {
          ASSERT_LE(std::fabs(out[i] - expected), 2.0 * plain_error + 6.0 * ulp)
              << name(activation.kind) << " of " << pairs.gate[i] << ", " << pairs.up[i] << " gave " << out[i];
        }
      }
    }
  });
}

TEST(CpuFinish, ScalesMultiplyTheirOwnProduct) {
  on_every_target([] {
    const std::vector<float> gate{1.0F, 2.0F, -3.0F, 40.0F, 5.0F};
    const std::vector<float> up{3.0F, 5.0F, 7.0F, 11.0F, 13.0F};
    std::vector<float> out(gate.size());
    const Activation silu{};
    finish_row({silu, 0.5, 4.0}, gate.data(), up.data(), 5, Format::fp32, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double expected =
          reference::activate(0.5 * static_cast<double>(gate[i]), 4.0 * static_cast<double>(up[i]), silu);
      EXPECT_NEAR(out[i], expected, std::fabs(expected) * 1e-6);
    }
  });
}

TEST(CpuFinish, ScalesWhoseProductIsBeyondFloat32Work) {
  on_every_target([] {
    const std::array gate{1e-30F, 1e30F};
    const std::array up{1.0F, 1.0F};
    std::array<float, 2> out{};
    finish_row({Activation{}, 1e42, 1.0}, gate.data(), up.data(), 1, Format::fp32, out.data());
    EXPECT_NEAR(out[0], 1e12F, 1e6F);
    finish_row({Activation{}, 1e-42, 1e12}, gate.data() + 1, up.data(), 1, Format::fp32, out.data());
    EXPECT_NEAR(out[0], 0.5F, 1e-6F);
  });
}

/// silu(64)·(x/64) is x: σ(64) is 1 and powers of two are exact.
TEST(CpuFinish, OutputsAreRoundedOnceToNearestEven) {
  on_every_target([] {
    std::mt19937 random(3);
    std::vector<float> values{65504.0F,   65519.996F, 65520.0F,  1e6F,       0x1p-24F,     0x1p-25F,
                              0x1.8p-25F, 2049.0F,    2051.0F,   3.3895e38F, inf,          -inf,
                              nan,        0.0F,       0x1.01p0F, 0x1.03p0F,  0x1.010002p0F};
    for (int i = 0; i < 20000; ++i) {
      const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (!(std::fabs(value) < 1e-30F)) {  // x/64 must be exact
        values.push_back(value);
      }
    }
    const std::vector<float> gate(values.size(), 64.0F);
    std::vector<float> up;
    for (const float value : values) {
      up.push_back(value / 64.0F);
    }
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::uint16_t> fp16(values.size());
    std::vector<std::uint16_t> bf16(values.size());
    finish_row({Activation{}, 1.0, 1.0}, gate.data(), up.data(), count, Format::fp16, fp16.data());
    finish_row({Activation{}, 1.0, 1.0}, gate.data(), up.data(), count, Format::bf16, bf16.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(formats::fp16_to_float(fp16[i])));
        ASSERT_TRUE(std::isnan(formats::bf16_to_float(bf16[i])));
      } else {
        ASSERT_EQ(fp16[i], formats::float_to_fp16(values[i])) << values[i];
        ASSERT_EQ(bf16[i], formats::float_to_bf16(values[i])) << values[i];
      }
    }
  });
}

TEST(CpuFinish, TransposedProductsLandInTheirRowsAndColumns) {
  on_every_target([] {
    constexpr std::int64_t stride = 32;  // rows, rounded up to 16
    for (const std::int64_t rows : {1, 16, 21}) {
      for (const std::int64_t columns : {1, 4, 19, 32}) {
        std::vector<float> gate(32 * stride);
        std::vector<float> up(gate.size());
        for (std::size_t i = 0; i < gate.size(); ++i) {
          gate[i] = 64.0F;
          up[i] = static_cast<float>(i);
        }
        std::vector<float> scratch(static_cast<std::size_t>(transposed_scratch_floats(columns)));
        std::vector<float> out(40 * 50, -1.0F);
        Tensor c = Tensor::contiguous(out.data(), Format::fp32, {40, 40});
        c.strides[0] = 50;
        finish_transposed({Activation{}, 1.0, 1.0}, gate.data(), up.data(), stride, rows, columns, c, 2, 3,
                          scratch.data());
        for (std::int64_t row = 0; row < 40; ++row) {
          for (std::int64_t column = 0; column < 50; ++column) {
            const bool inside = row >= 2 && row < 2 + rows && column >= 3 && column < 3 + columns;
            const float expected = inside ? 64.0F * static_cast<float>((column - 3) * stride + row - 2) : -1.0F;
            ASSERT_EQ(out[static_cast<std::size_t>(row * 50 + column)], expected) << row << ", " << column;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace thresher::cpu
