#include "cpu/rows.hpp"

#include <bit>
#include <cstring>

#include "formats/numbers.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef THRESHER_CPU_ROWS_TABLE
#define THRESHER_CPU_ROWS_TABLE
namespace thresher::cpu {

/// The 16 products of one scale with every e2m1 value as bf16: their low bytes, then their high bytes, so that a byte
/// permute looks up 16 at once.
struct ProductTable {
  alignas(64) std::uint8_t bytes[256][32];
};

inline constexpr ProductTable products = [] {
  ProductTable table{};
  for (unsigned scale = 0; scale < 256; ++scale) {
    for (unsigned code = 0; code < 16; ++code) {
      const bool nan =
          formats::is_e4m3_nan(static_cast<std::uint8_t>(scale));  // a constant expression cannot multiply it
      const float factor = formats::e4m3_values[scale];
      const float product = nan ? factor : factor * formats::e2m1_values[code];
      const std::uint16_t pattern = formats::float_to_bf16(product);  // exact: at most 6 significant bits
      table.bytes[scale][code] = static_cast<std::uint8_t>(pattern & 0xFF);
      table.bytes[scale][16 + code] = static_cast<std::uint8_t>(pattern >> 8);
    }
  }
  return table;
}();

}  // namespace thresher::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace thresher::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Two scale groups per vector if vectors have 256 bits, otherwise one.
using Bytes = hn::CappedTag<std::uint8_t, 32>;
inline constexpr std::size_t group = 16;

/// The tables of as many successive scales as `d` has 16-byte blocks.
template <class D>
HWY_INLINE hn::VFromD<D> LoadTables(D d, const std::uint8_t* scales, std::size_t half) {
  if constexpr (hn::MaxLanes(d) == group) {
    return hn::Load(d, products.bytes[*scales] + half);
  } else {
    const hn::Half<D> d_half;
    constexpr std::size_t blocks = hn::MaxLanes(d_half) / group;
    return hn::Combine(d, LoadTables(d_half, scales + blocks, half), LoadTables(d_half, scales, half));
  }
}

/// Calls store(i, v) with the 16-byte blocks v of 8 bf16 values in order, for `d`'s lanes at a time.
template <class D, class Store>
HWY_INLINE void DequantiseGroups(D d, const std::uint8_t* packed, const std::uint8_t* scales, const Store& store) {
  const hn::RepartitionToWide<D> d_pairs;
  const hn::Rebind<std::uint8_t, decltype(d_pairs)> d_packed;
  const auto pairs = hn::PromoteTo(d_pairs, hn::LoadU(d_packed, packed));
  const auto codes =
      hn::BitCast(d, hn::And(hn::Or(pairs, hn::ShiftLeft<4>(pairs)), hn::Set(d_pairs, std::uint16_t{0x0F0F})));
  const auto low = hn::TableLookupBytes(LoadTables(d, scales, 0), codes);
  const auto high = hn::TableLookupBytes(LoadTables(d, scales, group), codes);
  const auto first = hn::InterleaveLower(d, low, high);
  const auto second = hn::InterleaveUpper(d, low, high);
  if constexpr (hn::MaxLanes(d) == group) {
    store(0, hn::BitCast(d_pairs, first));
    store(1, hn::BitCast(d_pairs, second));
  } else {
    const hn::Half<D> d_half;
    const hn::RepartitionToWide<decltype(d_half)> d_out;
    store(0, hn::BitCast(d_out, hn::LowerHalf(d_half, first)));
    store(1, hn::BitCast(d_out, hn::LowerHalf(d_half, second)));
    store(2, hn::BitCast(d_out, hn::UpperHalf(d_half, first)));
    store(3, hn::BitCast(d_out, hn::UpperHalf(d_half, second)));
  }
}

template <class Store>
HWY_INLINE void DequantiseRow(const std::uint8_t* packed, const std::uint8_t* scales, std::size_t count,
                              const Store& store_at) {
  const Bytes d;
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    DequantiseGroups(d, packed + i / 2, scales + i / group,
                     [&](std::size_t block, auto values) HWY_ATTR { store_at(i + block * 8, values); });
  }
  for (; i < count; i += group) {
    DequantiseGroups(hn::FixedTag<std::uint8_t, group>(), packed + i / 2, scales + i / group,
                     [&](std::size_t block, auto values) HWY_ATTR { store_at(i + block * 8, values); });
  }
}

using Eight = hn::FixedTag<std::uint16_t, 8>;

void Nvfp4RowToBf16(const std::uint8_t* packed, const std::uint8_t* scales, std::size_t count, std::uint16_t* out) {
  DequantiseRow(packed, scales, count,
                [&](std::size_t i, hn::VFromD<Eight> values) HWY_ATTR { hn::StoreU(values, Eight(), out + i); });
}

/// bf16 patterns, 8 of them, as float32.
HWY_INLINE void StoreWidened(hn::VFromD<Eight> values, float* out) {
  const hn::RepartitionToWide<Eight> d_bits;
  const hn::RebindToFloat<decltype(d_bits)> d_float;
  const auto zero = hn::Zero(Eight());
  hn::StoreU(hn::BitCast(d_float, hn::InterleaveLower(Eight(), zero, values)), d_float, out);
  hn::StoreU(hn::BitCast(d_float, hn::InterleaveUpper(Eight(), zero, values)), d_float, out + 4);
}

void Nvfp4RowToFloat32(const std::uint8_t* packed, const std::uint8_t* scales, std::size_t count, float* out) {
  DequantiseRow(packed, scales, count,
                [&](std::size_t i, hn::VFromD<Eight> values) HWY_ATTR { StoreWidened(values, out + i); });
}

using Words = hn::CappedTag<std::uint32_t, 16>;
using Floats = hn::RebindToFloat<Words>;
using Shorts = hn::Rebind<std::uint16_t, Words>;

/// fp16 patterns in 32-bit lanes, as float32. No float32 subnormal is involved.
HWY_INLINE hn::VFromD<Floats> WidenFp16(hn::VFromD<Words> patterns) {
  const Words d;
  const Floats df;
  const auto sign = hn::ShiftLeft<16>(hn::And(patterns, hn::Set(d, 0x8000U)));
  const auto shifted = hn::ShiftLeft<13>(hn::And(patterns, hn::Set(d, 0x7FFFU)));
  const auto rebias = hn::Set(d, 112U << 23);
  const auto normal = hn::Add(shifted, rebias);
  // A subnormal becomes 2^-14 + value, from which 2^-14 is subtracted again.
  const auto subnormal =
      hn::BitCast(d, hn::Sub(hn::BitCast(df, hn::Add(normal, hn::Set(d, 1U << 23))), hn::Set(df, 0x1p-14F)));
  const auto is_subnormal =
      hn::Lt(hn::BitCast(hn::RebindToSigned<Words>(), shifted), hn::Set(hn::RebindToSigned<Words>(), 0x400 << 13));
  const auto is_special = hn::Gt(hn::BitCast(hn::RebindToSigned<Words>(), shifted),
                                 hn::Set(hn::RebindToSigned<Words>(), (0x7C00 << 13) - 1));
  const auto finite = hn::IfThenElse(hn::RebindMask(d, is_subnormal), subnormal, normal);
  const auto magnitude = hn::IfThenElse(hn::RebindMask(d, is_special), hn::Add(normal, rebias), finite);
  return hn::BitCast(df, hn::Or(magnitude, sign));
}

/// Calls body(i, patterns in 32-bit lanes, lanes to keep) over a row; the last call may hold fewer.
template <class Body>
HWY_INLINE void ForEachWords(const std::uint16_t* in, std::size_t count, const Body& body) {
  const Words d;
  const Shorts d_in;
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    body(i, hn::PromoteTo(d, hn::LoadU(d_in, in + i)), step);
  }
  if (i < count) {
    HWY_ALIGN std::uint16_t rest[hn::MaxLanes(Words())] = {};
    std::memcpy(rest, in + i, (count - i) * sizeof(std::uint16_t));
    body(i, hn::PromoteTo(d, hn::Load(d_in, rest)), count - i);
  }
}

template <class D, class V, class T>
HWY_INLINE void StoreFirst(D d, V values, std::size_t keep, T* out) {
  if (keep == hn::Lanes(d)) {
    hn::StoreU(values, d, out);
    return;
  }
  HWY_ALIGN T all[hn::MaxLanes(d)];
  hn::Store(values, d, all);
  std::memcpy(out, all, keep * sizeof(T));
}

void Fp16RowToBf16(const std::uint16_t* in, std::size_t count, std::uint16_t* high, std::uint16_t* low,
                   RangeLanes& lanes) {
  const Words d;
  const Floats df;
  const Shorts d_out;
  const auto upper = hn::Set(d, 0xFFFF0000U);
  const auto infinity = hn::Set(d, 0x7F800000U);
  const auto sign = hn::Set(d, 0x80000000U);
  auto met_infinity = hn::Zero(d);
  ForEachWords(in, count, [&](std::size_t i, auto patterns, std::size_t keep) HWY_ATTR {
    const auto value = WidenFp16(patterns);
    const auto bits = hn::BitCast(d, value);
    const auto quiet = hn::IfThenElseZero(hn::RebindMask(d, hn::IsNaN(value)), hn::Set(d, 0x00400000U));
    const auto high_bits = hn::And(hn::Or(bits, quiet), upper);  // a NaN's payload may be in the truncated bits
    const auto difference = hn::BitCast(d, hn::Sub(value, hn::BitCast(df, high_bits)));
    const auto special = hn::Eq(hn::And(bits, infinity), infinity);
    const auto low_bits = hn::IfThenZeroElse(special, difference);
    met_infinity = hn::Or(met_infinity, hn::VecFromMask(d, hn::Eq(hn::AndNot(sign, bits), infinity)));
    StoreFirst(d_out, hn::TruncateTo(d_out, hn::ShiftRight<16>(high_bits)), keep, high + i);
    StoreFirst(d_out, hn::TruncateTo(d_out, hn::ShiftRight<16>(low_bits)), keep, low + i);
  });
  if (!hn::AllTrue(d, hn::Eq(met_infinity, hn::Zero(d)))) {
    lanes.infinite[0] = 1;
  }
}

void Fp16RowToFloat32(const std::uint16_t* in, std::size_t count, float* out) {
  ForEachWords(in, count, [&](std::size_t i, auto patterns, std::size_t keep) HWY_ATTR {
    StoreFirst(Floats(), WidenFp16(patterns), keep, out + i);
  });
}

void Bf16RowToFloat32(const std::uint16_t* in, std::size_t count, float* out) {
  ForEachWords(in, count, [&](std::size_t i, auto patterns, std::size_t keep) HWY_ATTR {
    StoreFirst(Floats(), hn::BitCast(Floats(), hn::ShiftLeft<16>(patterns)), keep, out + i);
  });
}

void Bf16RowToBf16(const std::uint16_t* in, std::size_t count, std::uint16_t* out, RangeLanes& lanes) {
  const hn::CappedTag<std::uint16_t, RangeLanes::lanes> d;
  const std::size_t step = hn::Lanes(d);
  const auto magnitude_bits = hn::Set(d, std::uint16_t{0x7FFF});
  const auto infinity = hn::Set(d, std::uint16_t{0x7F80});
  const auto one = hn::Set(d, std::uint16_t{1});
  auto smallest = hn::Load(d, lanes.smallest.data());
  auto infinite = hn::Load(d, lanes.infinite.data());
  const auto look = [&](auto patterns) HWY_ATTR {
    const auto magnitude = hn::And(patterns, magnitude_bits);
    smallest = hn::Min(smallest, hn::Sub(magnitude, one));  // zero becomes the largest
    infinite = hn::Or(infinite, hn::VecFromMask(d, hn::Eq(magnitude, infinity)));
  };
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    const auto patterns = hn::LoadU(d, in + i);
    hn::StoreU(patterns, d, out + i);
    look(patterns);
  }
  if (i < count) {
    HWY_ALIGN std::uint16_t rest[hn::MaxLanes(d)] = {};
    std::memcpy(rest, in + i, (count - i) * sizeof(std::uint16_t));
    std::memcpy(out + i, rest, (count - i) * sizeof(std::uint16_t));
    look(hn::Load(d, rest));
  }
  hn::Store(smallest, d, lanes.smallest.data());
  hn::Store(infinite, d, lanes.infinite.data());
}

}  // namespace thresher::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thresher::cpu {
namespace {

HWY_EXPORT(Nvfp4RowToBf16);
HWY_EXPORT(Nvfp4RowToFloat32);
HWY_EXPORT(Fp16RowToBf16);
HWY_EXPORT(Fp16RowToFloat32);
HWY_EXPORT(Bf16RowToBf16);
HWY_EXPORT(Bf16RowToFloat32);

}  // namespace

void nvfp4_row_to_bf16(const std::uint8_t* packed, const std::uint8_t* scales, std::int64_t count, std::uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(Nvfp4RowToBf16)(packed, scales, static_cast<std::size_t>(count), out);
}

void nvfp4_row_to_float32(const std::uint8_t* packed, const std::uint8_t* scales, std::int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Nvfp4RowToFloat32)(packed, scales, static_cast<std::size_t>(count), out);
}

void fp16_row_to_bf16(const std::uint16_t* in, std::int64_t count, std::uint16_t* high, std::uint16_t* low,
                      RangeLanes& lanes) {
  HWY_DYNAMIC_DISPATCH(Fp16RowToBf16)(in, static_cast<std::size_t>(count), high, low, lanes);
}

void fp16_row_to_float32(const std::uint16_t* in, std::int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Fp16RowToFloat32)(in, static_cast<std::size_t>(count), out);
}

void bf16_row_to_bf16(const std::uint16_t* in, std::int64_t count, std::uint16_t* out, RangeLanes& lanes) {
  HWY_DYNAMIC_DISPATCH(Bf16RowToBf16)(in, static_cast<std::size_t>(count), out, lanes);
}

void bf16_row_to_float32(const std::uint16_t* in, std::int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Bf16RowToFloat32)(in, static_cast<std::size_t>(count), out);
}

}  // namespace thresher::cpu
#endif
