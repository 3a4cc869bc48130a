#pragma once
/// Tokens of the fast path to e4m3, in every call: each row times a power of two that brings its largest element into
/// (224, 448], one rounding an element, K permuted as fast_layout.hpp says.
#include "kernels/nvfp4/fold.hpp"
#include "kernels/nvfp4/token_format.hpp"
#include "kernels/nvfp4/widen.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/warp.hpp"

namespace thresher::kernels::nvfp4 {

inline constexpr u32 fold_threads = 256;
inline constexpr u32 fold_shared_bytes = fold_threads / 32 * 4;

struct FoldTokensParams {
  Matrix tokens;          ///< NVFP4; or rows of 16 bits in `values`
  Global<u8> out;         ///< [rows][128·⌈k/128⌉], zeros beyond k
  Global<float> factors;  ///< [rows]: 2^-e, NaN for a row that has a NaN or an Inf
  u32 groups = 0;         ///< 8·⌈k/128⌉ groups of 16
  u32 wide = 0;           ///< 1 when rows of 16 bits allow 16-byte loads
};

/// The largest of all threads' values.
TH_DEVICE u32 largest_of_block(u32 value) {
  const machine::Shared<u32> of_warps = machine::launch::shared_memory().as<u32>();
  TH_UNROLL
  for (u32 mask = 16; mask > 0; mask /= 2) {
    const u32 other = machine::warp::shuffle_xor(value, mask);
    value = other > value ? other : value;
  }
  const u32 warp = machine::warp::index();  // the whole warp asks
  if (machine::warp::lane() == 0) {
    of_warps.store(warp, value);
  }
  machine::block::sync();
  value = 0;
  TH_UNROLL
  for (u32 w = 0; w < fold_threads / 32; ++w) {
    const u32 other = of_warps.load(w);
    value = other > value ? other : value;
  }
  return value;
}

struct RowScale {
  int exponent;
  bool finite;
};

/// Codes of NVFP4 tokens: the bound is six times the largest scale.
class Nvfp4Row {
 public:
  TH_DEVICE Nvfp4Row(const FoldTokensParams& params, u32 row) : tokens_(params.tokens), row_(row) {}

  static constexpr u32 groups_a_line = 128 / 8;
  TH_DEVICE void prefetch(u32 group) const { prefetch_group(tokens_, row_, group); }
  TH_DEVICE u32 largest(u32 group) const { return scale_code(tokens_, row_, group) & 0x7FU; }
  static TH_DEVICE RowScale row_scale(u32 largest) {
    return {largest == 0x7FU ? 0 : fast::row_exponent(largest), largest != 0x7FU};
  }
  /// The group's 16 elements, four to a word.
  TH_DEVICE machine::Vector<u32, 4> folded(u32 group, float power) const {
    using namespace machine;
    const u32 code = scale_code(tokens_, row_, group);
    const float scale = convert::to_float(Half{static_cast<u16>(convert::e4m3x2_to_half2(static_cast<u16>(code)))});
    const u32 both = convert::pack<Half>(scale * power, scale * power);
    const Vector<u32, 2> codes = group_codes(tokens_, row_, group);
    Vector<u32, 4> words;
    TH_UNROLL
    for (u32 quarter = 0; quarter < 4; ++quarter) {
      const Vector<u32, 2> four = widen_four(codes.at[quarter / 2] >> (quarter % 2 * 16), both);
      words.at[quarter] = convert::half2_to_e4m3x2(four.at[0]) | static_cast<u32>(convert::half2_to_e4m3x2(four.at[1]))
                                                                     << 16;
    }
    return words;
  }

 private:
  const Matrix& tokens_;
  u32 row_;
};

/// Tokens of 16 bits.
template <typename Element>
class WideRow {
 public:
  TH_DEVICE WideRow(const FoldTokensParams& params, u32 row)
      : from_(params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes)), wide_(params.wide != 0) {}

  static constexpr u32 groups_a_line = 128 / 32;
  TH_DEVICE void prefetch(u32 group) const { from_.prefetch(group * 32); }
  /// Of magnitudes, as bits: they ascend with the values.
  TH_DEVICE u32 largest(u32 group) const {
    const Elements all = load(group);
    u32 value = 0;
    TH_UNROLL
    for (u32 i = 0; i < 16; ++i) {
      const u32 magnitude = all.at(i) & 0x7FFFU;
      value = magnitude > value ? magnitude : value;
    }
    return value;
  }

  static TH_DEVICE RowScale row_scale(u32 largest) {
    constexpr u32 infinity = machine::is_same<Element, machine::Half> ? 0x7C00U : 0x7F80U;
    if (largest >= infinity) {
      return {0, false};
    }
    const float value = machine::convert::to_float(Element{static_cast<machine::u16>(largest)});
    const u32 bits = machine::convert::float_bits(value);
    const int exponent = static_cast<int>(bits >> 23) - 127;
    constexpr u32 seven_quarters = 0x600000U;
    constexpr int most = 100;
    const int wanted = ((bits & 0x7FFFFFU) <= seven_quarters ? 8 : 7) - exponent;
    return {largest == 0 ? 0 : wanted < most ? wanted : most, true};
  }

  TH_DEVICE machine::Vector<u32, 4> folded(u32 group, float power) const {
    using namespace machine;
    const Elements all = load(group);
    const auto pair = [&](u32 i) {
      return static_cast<u32>(
          convert::floats_to_e4m3x2(convert::to_float(Element{static_cast<u16>(all.at(i))}) * power,
                                    convert::to_float(Element{static_cast<u16>(all.at(i + 1))}) * power));
    };
    Vector<u32, 4> words;
    TH_UNROLL
    for (u32 quarter = 0; quarter < 4; ++quarter) {
      words.at[quarter] = pair(4 * quarter) | pair(4 * quarter + 2) << 16;
    }
    return words;
  }

 private:
  struct Elements {
    machine::Vector<u32, 4> half[2];
    TH_DEVICE u32 at(u32 i) const { return half[i / 8].at[i % 8 / 2] >> (i % 2 * 16) & 0xFFFFU; }
  };

  TH_DEVICE Elements load(u32 group) const {
    Elements all{};
    if (wide_) {
      all.half[0] = from_.as<machine::Vector<u32, 4>>().load(group * 2);
      all.half[1] = from_.as<machine::Vector<u32, 4>>().load(group * 2 + 1);
    } else {
      TH_UNROLL
      for (u32 i = 0; i < 16; ++i) {
        all.half[i / 8].at[i % 8 / 2] |= static_cast<u32>(from_.as<machine::u16>().load(group * 16 + i))
                                         << (i % 2 * 16);
      }
    }
    return all;
  }

  Global<u8> from_;
  bool wide_;
};

template <TokenFormat format>
struct RowOf {
  using type = WideRow<machine::Half>;
};
template <>
struct RowOf<TokenFormat::bf16> {
  using type = WideRow<machine::BFloat16>;
};
template <>
struct RowOf<TokenFormat::nvfp4> {
  using type = Nvfp4Row;
};

/// One block folds one row.
template <TokenFormat format>
TH_KERNEL(fold_threads, 4)
fold_tokens_kernel(TH_GRID_CONSTANT const FoldTokensParams params) {
  machine::launch::release_dependents();
  const u32 row = machine::launch::block_index().x;
  const u32 thread = machine::launch::thread_index();
  const typename RowOf<format>::type from(params, row);
  constexpr u32 line = RowOf<format>::type::groups_a_line;
  if (thread * line < params.tokens.scale_columns) {
    from.prefetch(thread * line);
  }
  machine::launch::wait_for_earlier_grids();
  u32 largest = 0;
  for (u32 group = thread; group < params.tokens.scale_columns; group += fold_threads) {
    const u32 of_group = from.largest(group);
    largest = of_group > largest ? of_group : largest;
  }
  const RowScale scale = RowOf<format>::type::row_scale(largest_of_block(largest));
  const float power = fast::power_of_two(scale.exponent);
  if (thread == 0) {
    constexpr u32 nan_bits = 0x7FC00000U;
    params.factors.store(row,
                         scale.finite ? fast::power_of_two(-scale.exponent) : machine::convert::bits_float(nan_bits));
  }
  const Global<u32> out = params.out.offset(static_cast<i64>(row) * params.groups * 16).as<u32>();
  for (u32 group = thread; group < params.groups; group += fold_threads) {
    machine::Vector<u32, 4> words{};
    if (group < params.tokens.scale_columns) {
      words = from.folded(group, power);
    }
    TH_UNROLL
    for (u32 quarter = 0; quarter < 4; ++quarter) {
      out.store(fast::token_byte(group, quarter) / 4, words.at[quarter]);
    }
  }
}

}  // namespace thresher::kernels::nvfp4
