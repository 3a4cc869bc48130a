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

inline constexpr u32 fold_threads = 128;
/// Parts of a row that a thread keeps in registers between looking for the largest element and folding: rows of up to
/// fold_threads × fold_held × 16 elements are read once.
inline constexpr u32 fold_held = 4;
inline constexpr u32 fold_shared_bytes = fold_threads / 32 * 4;

struct FoldTokensParams {
  Matrix tokens;          ///< NVFP4; or rows of 16 bits in `values`
  Global<u8> out;         ///< [rows][128·⌈k/128⌉], zeros beyond k
  Global<float> factors;  ///< [rows]: 2^-e, NaN for a row that has a NaN or an Inf
  u32 groups = 0;         ///< 8·⌈k/128⌉ groups of 16
  /// 1 when rows of 16 bits allow 16-byte loads, and four scales of an NVFP4 row are one word.
  u32 wide = 0;
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

/// Sixteen elements of a row that lie together when folded: elements 4·quarter to 4·quarter + 3 of four groups.
struct FoldPart {
  u32 group;  ///< the first of the four, a multiple of 4
  u32 quarter;
};
TH_DEVICE constexpr FoldPart fold_part(u32 index) { return {index / 4 * 4, index % 4}; }
static_assert(fast::token_byte(fold_part(14).group, fold_part(14).quarter) == 14 * 16);

/// Codes of NVFP4 tokens: the bound is six times the largest scale.
class Nvfp4Row {
 public:
  TH_DEVICE Nvfp4Row(const FoldTokensParams& params, u32 row)
      : tokens_(params.tokens), row_(row), wide_(params.wide != 0) {}

  static constexpr u32 groups_a_line = 128 / 8;
  TH_DEVICE void prefetch(u32 group) const { prefetch_group(tokens_, row_, group); }

  struct Part {
    u32 codes[4];
    u32 scales;  ///< a byte for each group
  };
  /// Zeros beyond the row's end.
  TH_DEVICE Part load(const FoldPart& at) const {
    Part part{};
    if (wide_ && at.group + 3 < tokens_.scale_columns) {
      part.scales = tokens_.scales.offset(scale_index(tokens_, row_, at.group)).template as<u32>().load();
    } else {
      TH_UNROLL
      for (u32 i = 0; i < 4; ++i) {
        if (at.group + i < tokens_.scale_columns) {
          part.scales |= scale_code(tokens_, row_, at.group + i) << (8 * i);
        }
      }
    }
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      if (at.group + i < tokens_.scale_columns) {
        part.codes[i] = quarter_group_codes(tokens_, row_, at.group + i, at.quarter);
      }
    }
    return part;
  }
  static TH_DEVICE u32 largest(const Part& part) {
    u32 value = 0;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 code = part.scales >> (8 * i) & 0x7FU;
      value = code > value ? code : value;
    }
    return value;
  }
  static TH_DEVICE RowScale row_scale(u32 largest) {
    return {largest == 0x7FU ? 0 : fast::row_exponent(largest), largest != 0x7FU};
  }
  /// Four elements to a word, a word for each group.
  static TH_DEVICE machine::Vector<u32, 4> folded(const Part& part, float power) {
    using namespace machine;
    Vector<u32, 4> words;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 code = part.scales >> (8 * i) & 0xFFU;
      const float scale = convert::to_float(Half{static_cast<u16>(convert::e4m3x2_to_half2(static_cast<u16>(code)))});
      const Vector<u32, 2> four = widen_four(part.codes[i], convert::pack<Half>(scale * power, scale * power));
      words.at[i] = convert::half2_to_e4m3x2(four.at[0]) | static_cast<u32>(convert::half2_to_e4m3x2(four.at[1])) << 16;
    }
    return words;
  }

 private:
  const Matrix& tokens_;
  u32 row_;
  bool wide_;
};

/// Tokens of 16 bits.
template <typename Element>
class WideRow {
 public:
  TH_DEVICE WideRow(const FoldTokensParams& params, u32 row)
      : from_(params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes)),
        groups_(params.tokens.scale_columns),
        wide_(params.wide != 0) {}

  static constexpr u32 groups_a_line = 128 / 32;
  TH_DEVICE void prefetch(u32 group) const { from_.prefetch(group * 32); }

  struct Part {
    machine::Vector<u32, 2> of_group[4];
    TH_DEVICE u32 at(u32 group, u32 i) const { return of_group[group].at[i / 2] >> (i % 2 * 16) & 0xFFFFU; }
  };
  /// Zeros beyond the row's end.
  TH_DEVICE Part load(const FoldPart& at) const {
    Part part{};
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      if (at.group + i < groups_) {
        const u32 eight_bytes = (at.group + i) * 4 + at.quarter;
        if (wide_) {
          part.of_group[i] = from_.as<machine::Vector<u32, 2>>().load(eight_bytes);
        } else {
          TH_UNROLL
          for (u32 e = 0; e < 4; ++e) {
            part.of_group[i].at[e / 2] |= static_cast<u32>(from_.as<machine::u16>().load(eight_bytes * 4 + e))
                                          << (e % 2 * 16);
          }
        }
      }
    }
    return part;
  }
  /// Of magnitudes, as bits: they ascend with the values.
  static TH_DEVICE u32 largest(const Part& part) {
    u32 value = 0;
    TH_UNROLL
    for (u32 i = 0; i < 16; ++i) {
      const u32 magnitude = part.at(i / 4, i % 4) & 0x7FFFU;
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

  static TH_DEVICE machine::Vector<u32, 4> folded(const Part& part, float power) {
    using namespace machine;
    const auto pair = [&](u32 group, u32 i) {
      return static_cast<u32>(
          convert::floats_to_e4m3x2(convert::to_float(Element{static_cast<u16>(part.at(group, i))}) * power,
                                    convert::to_float(Element{static_cast<u16>(part.at(group, i + 1))}) * power));
    };
    Vector<u32, 4> words;
    TH_UNROLL
    for (u32 group = 0; group < 4; ++group) {
      words.at[group] = pair(group, 0) | pair(group, 2) << 16;
    }
    return words;
  }

 private:
  Global<u8> from_;
  u32 groups_;
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
TH_KERNEL(fold_threads, 8)
fold_tokens_kernel(TH_GRID_CONSTANT const FoldTokensParams params) {
  machine::launch::release_dependents();
  const u32 row = machine::launch::block_index().x;
  const u32 thread = machine::launch::thread_index();
  using Row = typename RowOf<format>::type;
  const Row from(params, row);
  for (u32 group = thread * Row::groups_a_line; group < params.tokens.scale_columns;
       group += fold_threads * Row::groups_a_line) {
    from.prefetch(group);
  }
  machine::launch::wait_for_earlier_grids();
  typename Row::Part held[fold_held];
  u32 largest = 0;
  const auto look = [&](const typename Row::Part& part) {
    const u32 of_part = Row::largest(part);
    largest = of_part > largest ? of_part : largest;
  };
  TH_UNROLL
  for (u32 i = 0; i < fold_held; ++i) {
    held[i] = from.load(fold_part(thread + i * fold_threads));
  }
  TH_UNROLL
  for (u32 i = 0; i < fold_held; ++i) {
    look(held[i]);
  }
  for (u32 index = thread + fold_held * fold_threads; index < params.groups; index += fold_threads) {
    look(from.load(fold_part(index)));
  }
  const RowScale scale = Row::row_scale(largest_of_block(largest));
  const float power = fast::power_of_two(scale.exponent);
  if (thread == 0) {
    constexpr u32 nan_bits = 0x7FC00000U;
    params.factors.store(row,
                         scale.finite ? fast::power_of_two(-scale.exponent) : machine::convert::bits_float(nan_bits));
  }
  using Words = machine::Vector<u32, 4>;
  const Global<Words> out = params.out.offset(static_cast<i64>(row) * params.groups * 16).template as<Words>();
  TH_UNROLL
  for (u32 i = 0; i < fold_held; ++i) {
    const u32 index = thread + i * fold_threads;
    if (index < params.groups) {
      out.store(index, Row::folded(held[i], power));
    }
  }
  for (u32 index = thread + fold_held * fold_threads; index < params.groups; index += fold_threads) {
    out.store(index, Row::folded(from.load(fold_part(index)), power));
  }
}

}  // namespace thresher::kernels::nvfp4
