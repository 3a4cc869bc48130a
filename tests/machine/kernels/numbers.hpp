#pragma once
// Arithmetic, conversions and bit tricks, one result an input.
#include "machine/machine.hpp"
#include "machine/math.hpp"

namespace thresher::machine::test {

struct NumberParams {
  Global<u32> a;
  Global<u32> b;
  Global<u32> c;
  Global<u32> out;  // [count · results]
  u32 count;
};

inline constexpr u32 float_results = 10;

/// Words as floats.
TH_KERNEL(128, 1) floats(TH_GRID_CONSTANT const NumberParams params) {
  for (u32 i = launch::thread_index(); i < params.count; i += 128) {
    const float a = convert::bits_float(params.a.load(i));
    const float b = convert::bits_float(params.b.load(i));
    const float c = convert::bits_float(params.c.load(i));
    const float results[float_results] = {math::exp2_approx(a),
                                          math::log2_approx(a),
                                          math::reciprocal_approx(a),
                                          math::tanh_approx(a),
                                          math::fma(a, b, c),
                                          math::max(a, b),
                                          math::min(a, b),
                                          math::exp(a),
                                          math::tanh(a),
                                          math::is_finite(a) ? 1.0F : 0.0F};
    for (u32 r = 0; r < float_results; ++r) {
      params.out.store(static_cast<i64>(i) * float_results + r, convert::float_bits(results[r]));
    }
  }
}

inline constexpr u32 narrow_results = 8;

/// a: floats to narrow; b: patterns to widen.
TH_KERNEL(128, 1) narrow(TH_GRID_CONSTANT const NumberParams params) {
  for (u32 i = launch::thread_index(); i < params.count; i += 128) {
    const float a = convert::bits_float(params.a.load(i));
    const u16 b = static_cast<u16>(params.b.load(i));
    const u32 results[narrow_results] = {convert::to_half(a).bits,
                                         convert::to_bfloat16(a).bits,
                                         convert::pack<Half>(a, -a),
                                         convert::pack<BFloat16>(-a, a),
                                         convert::float_bits(convert::to_float(Half{b})),
                                         convert::float_bits(convert::to_float(BFloat16{b})),
                                         convert::e4m3x2_to_half2(b),
                                         convert::floats_to_e4m3x2(a, -a)};
    for (u32 r = 0; r < narrow_results; ++r) {
      params.out.store(static_cast<i64>(i) * narrow_results + r, results[r]);
    }
  }
}

/// Packed words; 7 results.
template <typename Element>
TH_KERNEL(128, 1)
packed_words(TH_GRID_CONSTANT const NumberParams params) {
  for (u32 i = launch::thread_index(); i < params.count; i += 128) {
    const u32 a = params.a.load(i);
    const u32 b = params.b.load(i);
    const u32 c = params.c.load(i);
    params.out.store(static_cast<i64>(i) * 3, packed::multiply<Element>(a, b));
    params.out.store(static_cast<i64>(i) * 3 + 1, packed::add<Element>(a, b));
    params.out.store(static_cast<i64>(i) * 3 + 2, packed::fma<Element>(a, b, c));
  }
}

TH_KERNEL(128, 1) bit_tricks(TH_GRID_CONSTANT const NumberParams params) {
  for (u32 i = launch::thread_index(); i < params.count; i += 128) {
    const u32 a = params.a.load(i);
    const u32 b = params.b.load(i);
    const u32 c = params.c.load(i);
    const u32 results[6] = {bits::permute(a, b, c),     bits::logic3<0xE8>(a, b, c), bits::logic3<0x6A>(a, b, c),
                            bits::funnel_left(a, b, c), bits::multiply_add(a, b, c), bits::count_ones(a)};
    for (u32 r = 0; r < 6; ++r) {
      params.out.store(static_cast<i64>(i) * 6 + r, results[r]);
    }
  }
}

}  // namespace thresher::machine::test
