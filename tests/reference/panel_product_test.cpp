// The same sums on every instruction set that this CPU has.
#include "reference/panel_product.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <random>
#include <vector>

namespace thresher::reference {
namespace {

template <typename Real>
std::vector<Real> random_integers(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Real> values(static_cast<std::size_t>(count));
  for (Real& value : values) {
    value = static_cast<Real>(static_cast<int>(random() % 41) - 20);
  }
  return values;
}

template <typename Real>
void expect_right_sums() {
  constexpr std::int64_t k = 37;
  const std::vector<Real> a = random_integers<Real>(k * panel_rows, 1);
  const std::vector<Real> b = random_integers<Real>(k * panel_columns, 2);
  std::vector<Real> sums = random_integers<Real>(panel_rows * panel_columns, 3);
  std::vector<Real> expected = sums;
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t row = 0; row < panel_rows; ++row) {
      for (std::int64_t column = 0; column < panel_columns; ++column) {
        expected[static_cast<std::size_t>(row * panel_columns + column)] +=
            a[static_cast<std::size_t>(i * panel_rows + row)] * b[static_cast<std::size_t>(i * panel_columns + column)];
      }
    }
  }
  add_panel_product(a.data(), b.data(), k, sums.data());
  EXPECT_EQ(sums, expected);
}

TEST(PanelProduct, IsRightOnEveryInstructionSet) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    expect_right_sums<double>();
    expect_right_sums<float>();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace thresher::reference
