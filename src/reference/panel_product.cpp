#include "reference/panel_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/panel_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thresher::reference::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Two vectors of columns at a time: 12 sums, which together with their operands fit 16 registers.
template <typename Real>
void add_product(const Real* HWY_RESTRICT a, const Real* HWY_RESTRICT b, std::int64_t k, Real* HWY_RESTRICT sums) {
  const hn::CappedTag<Real, panel_columns / 2> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t column = 0; column < panel_columns; column += 2 * lanes) {
    Real* at = sums + column;
    auto s00 = hn::LoadU(tag, at), s01 = hn::LoadU(tag, at + lanes);
    auto s10 = hn::LoadU(tag, at + panel_columns), s11 = hn::LoadU(tag, at + panel_columns + lanes);
    auto s20 = hn::LoadU(tag, at + 2 * panel_columns), s21 = hn::LoadU(tag, at + 2 * panel_columns + lanes);
    auto s30 = hn::LoadU(tag, at + 3 * panel_columns), s31 = hn::LoadU(tag, at + 3 * panel_columns + lanes);
    auto s40 = hn::LoadU(tag, at + 4 * panel_columns), s41 = hn::LoadU(tag, at + 4 * panel_columns + lanes);
    auto s50 = hn::LoadU(tag, at + 5 * panel_columns), s51 = hn::LoadU(tag, at + 5 * panel_columns + lanes);
    for (std::int64_t i = 0; i < k; ++i) {
      const Real* factors = a + i * panel_rows;
      const auto b0 = hn::LoadU(tag, b + i * panel_columns + column);
      const auto b1 = hn::LoadU(tag, b + i * panel_columns + column + lanes);
      const auto add_row = [&](Real factor, auto& sum0, auto& sum1) HWY_ATTR {
        const auto broadcast = hn::Set(tag, factor);
        sum0 = hn::MulAdd(broadcast, b0, sum0);
        sum1 = hn::MulAdd(broadcast, b1, sum1);
      };
      add_row(factors[0], s00, s01);
      add_row(factors[1], s10, s11);
      add_row(factors[2], s20, s21);
      add_row(factors[3], s30, s31);
      add_row(factors[4], s40, s41);
      add_row(factors[5], s50, s51);
    }
    const auto store_row = [&](std::int64_t row, auto sum0, auto sum1) HWY_ATTR {
      hn::StoreU(sum0, tag, at + row * panel_columns);
      hn::StoreU(sum1, tag, at + row * panel_columns + lanes);
    };
    store_row(0, s00, s01);
    store_row(1, s10, s11);
    store_row(2, s20, s21);
    store_row(3, s30, s31);
    store_row(4, s40, s41);
    store_row(5, s50, s51);
  }
}

void add_product_double(const double* a, const double* b, std::int64_t k, double* sums) { add_product(a, b, k, sums); }
void add_product_float(const float* a, const float* b, std::int64_t k, float* sums) { add_product(a, b, k, sums); }

}  // namespace thresher::reference::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thresher::reference {

HWY_EXPORT(add_product_double);
HWY_EXPORT(add_product_float);

void add_panel_product(const double* a, const double* b, std::int64_t k, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_product_double)(a, b, k, sums);
}

void add_panel_product(const float* a, const float* b, std::int64_t k, float* sums) {
  HWY_DYNAMIC_DISPATCH(add_product_float)(a, b, k, sums);
}

}  // namespace thresher::reference
#endif
