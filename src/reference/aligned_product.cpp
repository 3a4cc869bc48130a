#include "reference/aligned_product.hpp"

#include "reference/panel_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/aligned_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thresher::reference::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Vector = hn::CappedTag<double, panel_columns>;
constexpr double quanta_of_largest = 1 << aligned_fraction_bits;
constexpr double min_power = 0x1p-900;  // if all are zero

/// 2 to the exponent of each; zero for zero, Inf for values that are not finite.
template <class V>
HWY_INLINE V power_of(V values) {
  const Vector tag;
  return hn::And(values, hn::BitCast(tag, hn::Set(hn::RebindToUnsigned<Vector>(), 0x7FF0000000000000U)));
}

template <class V>
HWY_INLINE V cut_to_fraction(V values) {
  const Vector tag;
  constexpr std::uint64_t kept = ~((std::uint64_t{1} << (52 - aligned_fraction_bits)) - 1);
  return hn::And(values, hn::BitCast(tag, hn::Set(hn::RebindToUnsigned<Vector>(), kept)));
}

/// For one row: `a` is its element of the first k; the next are `stride` apart.
HWY_INLINE void add_row(const double* HWY_RESTRICT a, std::int64_t stride, const double* HWY_RESTRICT b, std::int64_t k,
                        double* HWY_RESTRICT sums) {
  const Vector tag;
  const auto sum = hn::LoadU(tag, sums);
  auto largest = hn::Max(power_of(sum), hn::Set(tag, min_power));
  for (std::int64_t i = 0; i < k; ++i) {
    const auto factor = power_of(hn::Set(tag, a[i * stride]));
    largest = hn::Max(largest, hn::Mul(factor, power_of(hn::LoadU(tag, b + i * panel_columns))));
  }
  const auto per_quantum = hn::Div(hn::Set(tag, quanta_of_largest), largest);
  auto quanta = hn::Trunc(hn::Mul(sum, per_quantum));
  for (std::int64_t i = 0; i < k; ++i) {
    const auto product = hn::Mul(hn::Set(tag, a[i * stride]), hn::LoadU(tag, b + i * panel_columns));
    quanta = hn::Add(quanta, hn::Trunc(hn::Mul(product, per_quantum)));
  }
  hn::StoreU(cut_to_fraction(hn::Div(quanta, per_quantum)), tag, sums);
}

void add_aligned(const double* a, const double* b, std::int64_t k, double* sums) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Vector()));
  for (std::int64_t column = 0; column < panel_columns; column += lanes) {
    for (std::int64_t row = 0; row < panel_rows; ++row) {
      add_row(a + row, panel_rows, b + column, k, sums + row * panel_columns + column);
    }
  }
}

void add_aligned_to_row(const double* a, const double* b, std::int64_t k, double* sums) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Vector()));
  for (std::int64_t column = 0; column < panel_columns; column += lanes) {
    add_row(a, 1, b + column, k, sums + column);
  }
}

}  // namespace thresher::reference::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

namespace thresher::reference {

HWY_EXPORT(add_aligned);
HWY_EXPORT(add_aligned_to_row);

void add_aligned_row(const double* a, const double* b, std::int64_t k, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_aligned_to_row)(a, b, k, sums);
}

void add_aligned_product(const double* a, const double* b, std::int64_t k, double* sums) {
  const auto is_finite = [](const double* values, std::int64_t count) {
    return std::all_of(values, values + count, [](double value) { return std::isfinite(value); });
  };
  // A sum with NaN or Inf stays so, however it is truncated.
  if (is_finite(a, k * panel_rows) && is_finite(b, k * panel_columns) && is_finite(sums, panel_rows * panel_columns)) {
    HWY_DYNAMIC_DISPATCH(add_aligned)(a, b, k, sums);
  } else {
    add_panel_product(a, b, k, sums);
  }
}

}  // namespace thresher::reference
#endif
