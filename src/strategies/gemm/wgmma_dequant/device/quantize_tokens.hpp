#pragma once
/// Quantizes the tokens of the fast path to e4m3, in every call. Each row is multiplied by a power of two that brings
/// its largest element into (224, 448], with one rounding per element. K is permuted as fast_layout.hpp says.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/warp.hpp"
#include "strategies/gemm/device/nvfp4.hpp"
#include "strategies/gemm/wgmma_dequant/device/fast_layout.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

/// The format that tokens come in.
enum class TokenFormat : u8 { fp16, bf16, nvfp4 };

inline constexpr u32 quantize_threads = 256;
/// Parts of a row that a thread keeps in registers between looking for the largest element and quantizing. Rows of up
/// to quantize_threads × held_parts × 16 elements are read once.
inline constexpr u32 held_parts = 2;
inline constexpr u32 quantize_shared_bytes = quantize_threads / 32 * 4;

struct QuantizeTokensParams {
  Nvfp4Matrix tokens;     ///< NVFP4; or rows of 16 bits in `values`
  Global<u8> out;         ///< [rows][128·⌈k/128⌉], zeros beyond k
  Global<float> factors;  ///< [rows]: 2^-e, NaN for a row that has a NaN or an Inf
  u32 groups = 0;         ///< 8·⌈k/128⌉ groups of 16
  u32 whole = 0;  ///< 1 when a row has whole parts, which its pitch allows to load as WholeNvfp4Row and WholeRow do
};

/// The largest of all threads' values.
TH_DEVICE u32 largest_of_block(u32 value) {
  const machine::Shared<u32> of_warps = machine::launch::shared_memory().as<u32>();
  value = machine::warp::reduce(value, [](u32 a, u32 b) { return b > a ? b : a; });
  const u32 warp = machine::warp::index();  // the whole warp asks
  if (machine::warp::lane() == 0) {
    of_warps.store(warp, value);
  }
  machine::block::sync();
  value = 0;
  TH_UNROLL
  for (u32 w = 0; w < quantize_threads / 32; ++w) {
    const u32 other = of_warps.load(w);
    value = other > value ? other : value;
  }
  return value;
}

struct RowScale {
  int exponent;
  bool finite;
};

/// A thread quantizes sixteen elements at a time, which lie together afterwards: elements 4·quarter to 4·quarter + 3 of
/// four groups. Thread t takes parts t, t + quantize_threads, …
struct QuantizedPart {
  u32 group;  ///< the first of the four, a multiple of 4
  u32 quarter;
};
TH_DEVICE constexpr QuantizedPart quantized_part(u32 index) { return {index / 4 * 4, index % 4}; }
static_assert(fast::token_byte(quantized_part(14).group, quantized_part(14).quarter) == 14 * 16);
static_assert(quantize_threads % 4 == 0, "a thread has the same quarter of all its parts");

/// A part of NVFP4 tokens: the bound of a row is six times its largest scale.
struct Nvfp4Part {
  u32 codes[4];  ///< four of each group
  u32 scales;    ///< a byte for each group

  TH_DEVICE u32 largest() const {
    u32 value = 0;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 code = scales >> (8 * i) & 0x7FU;
      value = code > value ? code : value;
    }
    return value;
  }
  static TH_DEVICE RowScale row_scale(u32 largest) {
    return {largest == 0x7FU ? 0 : fast::row_exponent(largest), largest != 0x7FU};
  }
  /// Four elements to a word, a word for each group. `power` is 2^-3 to 2^15, which fp16 has.
  TH_DEVICE machine::Vector<u32, 4> quantized(float power) const {
    using namespace machine;
    const u32 powers = convert::pack<Half>(power, power);
    const u32 pairs[2] = {
        machine::packed::multiply<Half>(convert::e4m3x2_to_half2(static_cast<u16>(scales)), powers),
        machine::packed::multiply<Half>(convert::e4m3x2_to_half2(static_cast<u16>(scales >> 16)), powers)};
    Vector<u32, 4> words;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 scale =
          i % 2 == 0 ? machine::packed::broadcast<0>(pairs[i / 2]) : machine::packed::broadcast<1>(pairs[i / 2]);
      const Vector<u32, 2> four = widen_four(codes[i], scale);
      words.at[i] = convert::half2_to_e4m3x2(four.at[0]) | static_cast<u32>(convert::half2_to_e4m3x2(four.at[1])) << 16;
    }
    return words;
  }
};

/// A part of 16-bit tokens.
template <typename Element>
struct WidePart {
  machine::Vector<u32, 2> of_group[4];

  TH_DEVICE u32 at(u32 group, u32 i) const { return of_group[group].at[i / 2] >> (i % 2 * 16) & 0xFFFFU; }
  /// Compares magnitudes as bits, which ascend with the values.
  TH_DEVICE u32 largest() const {
    u32 value = 0;
    TH_UNROLL
    for (u32 i = 0; i < 16; ++i) {
      const u32 magnitude = at(i / 4, i % 4) & 0x7FFFU;
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
  TH_DEVICE machine::Vector<u32, 4> quantized(float power) const {
    using namespace machine;
    const auto pair = [&](u32 group, u32 i) {
      return static_cast<u32>(
          convert::floats_to_e4m3x2(convert::to_float(Element{static_cast<u16>(at(group, i))}) * power,
                                    convert::to_float(Element{static_cast<u16>(at(group, i + 1))}) * power));
    };
    Vector<u32, 4> words;
    TH_UNROLL
    for (u32 group = 0; group < 4; ++group) {
      words.at[group] = pair(group, 0) | pair(group, 2) << 16;
    }
    return words;
  }
};

/// Any row of NVFP4 tokens.
class Nvfp4Row {
 public:
  using Part = Nvfp4Part;
  static constexpr u32 groups_per_line = 128 / 8;

  TH_DEVICE Nvfp4Row(const QuantizeTokensParams& params, u32 row, u32 thread)
      : tokens_(params.tokens), row_(row), thread_(thread) {}

  /// The thread's part number `i`, zeros beyond the row's end.
  TH_DEVICE Part load(u32 i) const {
    const QuantizedPart at = quantized_part(thread_ + i * quantize_threads);
    Part part{};
    TH_UNROLL
    for (u32 g = 0; g < 4; ++g) {
      if (at.group + g < tokens_.scale_columns) {
        part.scales |= scale_code(tokens_, row_, at.group + g) << (8 * g);
        part.codes[g] = quarter_group_codes(tokens_, row_, at.group + g, at.quarter);
      }
    }
    return part;
  }

 private:
  const Nvfp4Matrix& tokens_;
  u32 row_;
  u32 thread_;
};

/// A row whose number of groups is a multiple of 4, its codes in whole words, the scales of four groups in one. Every
/// address is known before the earlier grids are waited for, and no load has a branch of its own.
class WholeNvfp4Row {
 public:
  using Part = Nvfp4Part;

  TH_DEVICE WholeNvfp4Row(const QuantizeTokensParams& params, u32 row, u32 thread)
      : left_(static_cast<int>(params.tokens.scale_columns) - static_cast<int>(thread)) {
    const QuantizedPart at = quantized_part(left_ > 0 ? thread : 0);
    codes_ = group_address(params.tokens, row, at.group).offset(at.quarter * 2);
    scales_ = params.tokens.scales.offset(scale_index(params.tokens, row, at.group));
    scales_step_ = params.tokens.scales_blocked != 0 ? quantize_threads * 128 : quantize_threads;
  }

  TH_DEVICE Part load(u32 i) const {
    const bool is_there = static_cast<int>(i * quantize_threads) < left_;
    const u32 place = is_there ? i : 0;
    const Global<machine::u16> from =
        codes_.offset(static_cast<i64>(place * (quantize_threads * 8))).as<machine::u16>();
    const u32 scales = scales_.offset(static_cast<i64>(place * scales_step_)).as<u32>().load();
    Part part;
    TH_UNROLL
    for (u32 g = 0; g < 4; ++g) {
      const u32 codes = from.load(g * 4);
      part.codes[g] = is_there ? codes : 0;
    }
    part.scales = is_there ? scales : 0;
    return part;
  }

 private:
  int left_;  ///< parts of the row from the thread's first on
  Global<u8> codes_;
  Global<u8> scales_;
  u32 scales_step_;  ///< bytes between those of a thread's parts
};

/// Any row of 16-bit tokens.
template <typename Element>
class WideRow {
 public:
  using Part = WidePart<Element>;
  static constexpr u32 groups_per_line = 128 / 32;

  TH_DEVICE WideRow(const QuantizeTokensParams& params, u32 row, u32 thread)
      : from_(params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes).template as<machine::u16>()),
        groups_(params.tokens.scale_columns),
        thread_(thread) {}

  TH_DEVICE Part load(u32 i) const {
    const QuantizedPart at = quantized_part(thread_ + i * quantize_threads);
    Part part{};
    TH_UNROLL
    for (u32 g = 0; g < 4; ++g) {
      if (at.group + g < groups_) {
        TH_UNROLL
        for (u32 e = 0; e < 4; ++e) {
          part.of_group[g].at[e / 2] |= static_cast<u32>(from_.load((at.group + g) * 16 + at.quarter * 4 + e))
                                        << (e % 2 * 16);
        }
      }
    }
    return part;
  }

 private:
  Global<machine::u16> from_;
  u32 groups_;
  u32 thread_;
};

/// The same as for NVFP4.
template <typename Element>
class WholeRow {
 public:
  using Part = WidePart<Element>;

  TH_DEVICE WholeRow(const QuantizeTokensParams& params, u32 row, u32 thread)
      : left_(static_cast<int>(params.tokens.scale_columns) - static_cast<int>(thread)) {
    const QuantizedPart at = quantized_part(left_ > 0 ? thread : 0);
    from_ =
        params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes + at.group * 32 + at.quarter * 8);
  }

  TH_DEVICE Part load(u32 i) const {
    using Four = machine::Vector<u32, 2>;
    const bool is_there = static_cast<int>(i * quantize_threads) < left_;
    const Global<Four> from =
        from_.offset(static_cast<i64>((is_there ? i : 0) * (quantize_threads * 32))).template as<Four>();
    Part part;
    TH_UNROLL
    for (u32 g = 0; g < 4; ++g) {
      const Four four = from.load(g * 4);
      part.of_group[g] = is_there ? four : Four{};
    }
    return part;
  }

 private:
  int left_;
  Global<u8> from_;
};

template <TokenFormat format>
struct RowOf {
  using Any = WideRow<machine::Half>;
  using Whole = WholeRow<machine::Half>;
};
template <>
struct RowOf<TokenFormat::bf16> {
  using Any = WideRow<machine::BFloat16>;
  using Whole = WholeRow<machine::BFloat16>;
};
template <>
struct RowOf<TokenFormat::nvfp4> {
  using Any = Nvfp4Row;
  using Whole = WholeNvfp4Row;
};

/// By all threads of a block.
template <class Row>
TH_DEVICE void quantize_row(const QuantizeTokensParams& params, u32 row, u32 thread) {
  const Row from(params, row, thread);
  using Words = machine::Vector<u32, 4>;
  const Global<Words> out =
      params.out.offset(static_cast<i64>(row) * params.groups * 16).template as<Words>().offset(thread);
  const u32 parts = params.groups > thread ? (params.groups - thread + quantize_threads - 1) / quantize_threads : 0;
  machine::launch::wait_for_earlier_grids();
  typename Row::Part held[held_parts];
  TH_UNROLL
  for (u32 i = 0; i < held_parts; ++i) {
    held[i] = from.load(i);
  }
  u32 largest = 0;
  const auto look = [&](const typename Row::Part& part) {
    const u32 of_part = part.largest();
    largest = of_part > largest ? of_part : largest;
  };
  TH_UNROLL
  for (u32 i = 0; i < held_parts; ++i) {
    look(held[i]);
  }
  for (u32 i = held_parts; i < parts; ++i) {
    look(from.load(i));
  }
  const RowScale scale = Row::Part::row_scale(largest_of_block(largest));
  const float power = fast::power_of_two(scale.exponent);
  if (thread == 0) {
    constexpr u32 nan_bits = 0x7FC00000U;
    params.factors.store(row,
                         scale.finite ? fast::power_of_two(-scale.exponent) : machine::convert::bits_float(nan_bits));
  }
  TH_UNROLL
  for (u32 i = 0; i < held_parts; ++i) {
    if (i < parts) {
      out.store(i * quantize_threads, held[i].quantized(power));
    }
  }
  for (u32 i = held_parts; i < parts; ++i) {
    out.store(static_cast<i64>(i) * quantize_threads, from.load(i).quantized(power));
  }
}

/// One block quantizes one row.
template <TokenFormat format>
TH_KERNEL(quantize_threads, 6)
quantize_tokens_kernel(TH_GRID_CONSTANT const QuantizeTokensParams params) {
  machine::launch::release_dependents();
  const u32 row = machine::launch::block_index().x;
  const u32 thread = machine::launch::thread_index();
  constexpr u32 line = RowOf<format>::Any::groups_per_line;
  for (u32 group = thread * line; group < params.tokens.scale_columns; group += quantize_threads * line) {
    if constexpr (format == TokenFormat::nvfp4) {
      prefetch_group(params.tokens, row, group);
    } else {
      params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes).prefetch(group * 32);
    }
  }
  if (params.whole != 0) {
    quantize_row<typename RowOf<format>::Whole>(params, row, thread);
  } else {
    quantize_row<typename RowOf<format>::Any>(params, row, thread);
  }
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
