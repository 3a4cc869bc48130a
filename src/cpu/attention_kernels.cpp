#include "cpu/attention_kernels.hpp"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/attention_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once for each target.
#include <hwy/highway.h>
// After highway.h.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace thresher::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;

/// Two vectors of columns for four rows: eight independent sums hide the latency of the multiply-add.
template <int rows>
void product_tile(std::int64_t columns, std::int64_t depth, const float* a, std::int64_t a_stride, const float* b,
                  std::int64_t b_stride, float* c, std::int64_t c_stride, bool accumulate) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* a0 = a;
  const float* a1 = rows > 1 ? a + a_stride : a;
  const float* a2 = rows > 2 ? a + 2 * a_stride : a;
  const float* a3 = rows > 3 ? a + 3 * a_stride : a;
  const auto start = [&](int row, std::int64_t column) {
    return accumulate && row < rows ? hn::LoadU(d, c + row * c_stride + column) : hn::Zero(d);
  };
  std::int64_t column = 0;
  for (; column + 2 * lanes <= columns; column += 2 * lanes) {
    auto c00 = start(0, column), c01 = start(0, column + lanes);
    auto c10 = start(1, column), c11 = start(1, column + lanes);
    auto c20 = start(2, column), c21 = start(2, column + lanes);
    auto c30 = start(3, column), c31 = start(3, column + lanes);
    for (std::int64_t k = 0; k < depth; ++k) {
      const auto b0 = hn::LoadU(d, b + k * b_stride + column);
      const auto b1 = hn::LoadU(d, b + k * b_stride + column + lanes);
      const auto x0 = hn::Set(d, a0[k]);
      c00 = hn::MulAdd(x0, b0, c00), c01 = hn::MulAdd(x0, b1, c01);
      if constexpr (rows > 1) {
        const auto x1 = hn::Set(d, a1[k]);
        c10 = hn::MulAdd(x1, b0, c10), c11 = hn::MulAdd(x1, b1, c11);
      }
      if constexpr (rows > 2) {
        const auto x2 = hn::Set(d, a2[k]);
        c20 = hn::MulAdd(x2, b0, c20), c21 = hn::MulAdd(x2, b1, c21);
      }
      if constexpr (rows > 3) {
        const auto x3 = hn::Set(d, a3[k]);
        c30 = hn::MulAdd(x3, b0, c30), c31 = hn::MulAdd(x3, b1, c31);
      }
    }
    const auto finish = [&](int row, auto low, auto high) {
      if (row < rows) {
        hn::StoreU(low, d, c + row * c_stride + column);
        hn::StoreU(high, d, c + row * c_stride + column + lanes);
      }
    };
    finish(0, c00, c01);
    finish(1, c10, c11);
    finish(2, c20, c21);
    finish(3, c30, c31);
  }
  for (; column < columns; column += lanes) {
    for (int row = 0; row < rows; ++row) {
      auto sum = start(row, column);
      for (std::int64_t k = 0; k < depth; ++k) {
        sum = hn::MulAdd(hn::Set(d, a[row * a_stride + k]), hn::LoadU(d, b + k * b_stride + column), sum);
      }
      hn::StoreU(sum, d, c + row * c_stride + column);
    }
  }
}

void matrix_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a, std::int64_t a_stride,
                    const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride, bool accumulate) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    product_tile<4>(columns, depth, a + row * a_stride, a_stride, b, b_stride, c + row * c_stride, c_stride,
                    accumulate);
  }
  for (; row < rows; ++row) {
    product_tile<1>(columns, depth, a + row * a_stride, a_stride, b, b_stride, c + row * c_stride, c_stride,
                    accumulate);
  }
}

template <typename Narrow>
void widen_as(const std::uint16_t* values, std::int64_t count, float* out) {
  const Floats d;
  const hn::Rebind<Narrow, Floats> narrow;
  const hn::Rebind<std::uint16_t, Floats> bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(narrow, hn::LoadU(bits, values + i))), d, out + i);
  }
  if (i < count) {
    HWY_ALIGN std::uint16_t rest[16] = {};
    HWY_ALIGN float wide[16];
    for (std::int64_t j = i; j < count; ++j) {
      rest[j - i] = values[j];
    }
    hn::Store(hn::PromoteTo(d, hn::BitCast(narrow, hn::Load(bits, rest))), d, wide);
    for (std::int64_t j = i; j < count; ++j) {
      out[j] = wide[j - i];
    }
  }
}

void widen(const std::uint16_t* values, Format format, std::int64_t count, float* out) {
  if (format == Format::fp16) {
    widen_as<hwy::float16_t>(values, count, out);
  } else {
    widen_as<hwy::bfloat16_t>(values, count, out);
  }
}

LogitRange scale_logits(float* logits, std::int64_t count, float scale, float cap) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (cap != 0.0F) {
    for (std::int64_t i = 0; i < count; ++i) {
      logits[i] = cap * std::tanh(logits[i] * scale / cap);
    }
    scale = 1.0F;
  }
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  const auto limit = hn::Set(d, infinity);
  auto maximum = hn::Set(d, -infinity);
  auto below = hn::FirstN(d, hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::Mul(hn::LoadU(d, logits + i), factor);
    hn::StoreU(x, d, logits + i);
    maximum = hn::Max(x, maximum);
    below = hn::And(below, hn::Lt(x, limit));
  }
  LogitRange range{hn::GetLane(hn::MaxOfLanes(d, maximum)), hn::AllTrue(d, below)};
  for (; i < count; ++i) {
    logits[i] *= scale;
    range.maximum = logits[i] > range.maximum ? logits[i] : range.maximum;
    range.all_below_infinity = range.all_below_infinity && logits[i] < infinity;
  }
  return range;
}

float exponentials(float* logits, std::int64_t count, float shift) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto subtract = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::Exp(d, hn::Sub(hn::LoadU(d, logits + i), subtract));
    hn::StoreU(x, d, logits + i);
    sum = hn::Add(sum, x);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; ++i) {
    logits[i] = std::exp(logits[i] - shift);
    total += logits[i];
  }
  return total;
}

void multiply(float* values, std::int64_t count, float factor) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factors = hn::Set(d, factor);
  for (std::int64_t i = 0; i < count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), factors), d, values + i);
  }
}

}  // namespace thresher::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thresher::cpu {

HWY_EXPORT(matrix_product);
HWY_EXPORT(widen);
HWY_EXPORT(scale_logits);
HWY_EXPORT(exponentials);
HWY_EXPORT(multiply);

void matrix_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a, std::int64_t a_stride,
                    const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(matrix_product)(rows, columns, depth, a, a_stride, b, b_stride, c, c_stride, accumulate);
}

void widen(const std::uint16_t* values, Format format, std::int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(widen)(values, format, count, out);
}

LogitRange scale_logits(float* logits, std::int64_t count, float scale, float cap) {
  return HWY_DYNAMIC_DISPATCH(scale_logits)(logits, count, scale, cap);
}

float exponentials(float* logits, std::int64_t count, float shift) {
  return HWY_DYNAMIC_DISPATCH(exponentials)(logits, count, shift);
}

void multiply(float* values, std::int64_t count, float factor) {
  HWY_DYNAMIC_DISPATCH(multiply)(values, count, factor);
}

}  // namespace thresher::cpu
#endif
