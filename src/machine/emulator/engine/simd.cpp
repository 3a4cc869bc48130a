#include "machine/emulator/engine/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "machine/emulator/engine/simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thresher::emulator::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void raise_each(std::uint32_t* into, const std::uint32_t* from, std::size_t count) {
  const hn::ScalableTag<std::uint32_t> tag;
  const std::size_t step = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    hn::StoreU(hn::Max(hn::LoadU(tag, into + i), hn::LoadU(tag, from + i)), tag, into + i);
  }
  for (; i < count; ++i) {
    into[i] = into[i] < from[i] ? from[i] : into[i];
  }
}

void lower_each(std::uint32_t* into, const std::uint32_t* from, std::size_t count) {
  const hn::ScalableTag<std::uint32_t> tag;
  const std::size_t step = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    hn::StoreU(hn::Min(hn::LoadU(tag, into + i), hn::LoadU(tag, from + i)), tag, into + i);
  }
  for (; i < count; ++i) {
    into[i] = into[i] > from[i] ? from[i] : into[i];
  }
}

template <class Narrow>
HWY_INLINE void widen(float* to, const std::uint16_t* from, std::size_t count) {
  const hn::ScalableTag<float> wide;
  const hn::Rebind<Narrow, decltype(wide)> narrow;
  const hn::Rebind<std::uint16_t, decltype(wide)> bits;
  const std::size_t step = hn::Lanes(wide);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    hn::StoreU(hn::PromoteTo(wide, hn::BitCast(narrow, hn::LoadU(bits, from + i))), wide, to + i);
  }
  if (i < count) {
    HWY_ALIGN std::uint16_t rest[HWY_MAX_BYTES / 2] = {};
    HWY_ALIGN float widened[HWY_MAX_BYTES / 4];
    for (std::size_t j = i; j < count; ++j) {
      rest[j - i] = from[j];
    }
    hn::Store(hn::PromoteTo(wide, hn::BitCast(narrow, hn::LoadU(bits, rest))), wide, widened);
    for (std::size_t j = i; j < count; ++j) {
      to[j] = widened[j - i];
    }
  }
}

void widen_fp16(float* to, const std::uint16_t* from, std::size_t count) { widen<hwy::float16_t>(to, from, count); }
void widen_bf16(float* to, const std::uint16_t* from, std::size_t count) { widen<hwy::bfloat16_t>(to, from, count); }

void transpose(float* to, const float* from, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; r += 8) {
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t i = 0; i < 8; ++i) {
        to[c * rows + r + i] = from[(r + i) * columns + c];
      }
    }
  }
}

/// Four rows by `vectors` vectors of columns, held in registers over the whole depth.
template <std::size_t vectors, class Tag>
HWY_INLINE void panel(Tag tag, float* d, const float* a, const float* b, std::size_t columns, std::size_t depth) {
  const std::size_t lanes = hn::Lanes(tag);
  constexpr std::size_t rows = 4;
  for (std::size_t row = 0; row < 64; row += rows) {
    hn::Vec<Tag> sum[rows][vectors];
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t v = 0; v < vectors; ++v) {
        sum[r][v] = hn::LoadU(tag, d + (row + r) * columns + v * lanes);
      }
    }
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const auto right = hn::LoadU(tag, b + k * columns + v * lanes);
        for (std::size_t r = 0; r < rows; ++r) {
          sum[r][v] = hn::MulAdd(hn::Set(tag, a[(row + r) * depth + k]), right, sum[r][v]);
        }
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t v = 0; v < vectors; ++v) {
        hn::StoreU(sum[r][v], tag, d + (row + r) * columns + v * lanes);
      }
    }
  }
}

void multiply_add_64(float* d, const float* a, const float* b, std::size_t columns, std::size_t depth) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 8> narrow;  // 8 columns at a time, or 4 if vectors are shorter
  const std::size_t lanes = hn::Lanes(wide);
  std::size_t column = 0;
  for (; column + 2 * lanes <= columns; column += 2 * lanes) {
    panel<2>(wide, d + column, a, b + column, columns, depth);
  }
  for (; column < columns; column += hn::Lanes(narrow)) {
    panel<1>(narrow, d + column, a, b + column, columns, depth);
  }
}

}  // namespace thresher::emulator::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thresher::emulator::simd {

HWY_EXPORT(raise_each);
HWY_EXPORT(lower_each);
HWY_EXPORT(multiply_add_64);
HWY_EXPORT(widen_fp16);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(transpose);

void raise_each(std::uint32_t* into, const std::uint32_t* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(raise_each)(into, from, count);
}
void lower_each(std::uint32_t* into, const std::uint32_t* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(lower_each)(into, from, count);
}
void multiply_add_64(float* d, const float* a, const float* b, std::size_t columns, std::size_t depth) {
  HWY_DYNAMIC_DISPATCH(multiply_add_64)(d, a, b, columns, depth);
}

void widen_fp16(float* to, const std::uint16_t* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_fp16)(to, from, count);
}
void widen_bf16(float* to, const std::uint16_t* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(to, from, count);
}
void transpose(float* to, const float* from, std::size_t rows, std::size_t columns) {
  HWY_DYNAMIC_DISPATCH(transpose)(to, from, rows, columns);
}

}  // namespace thresher::emulator::simd
#endif
