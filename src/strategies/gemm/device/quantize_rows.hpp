#pragma once
/// Quantizes rows in a pass of its own: tokens of 16 bits to FP8, and outputs that a product left in float32 to FP8 or
/// NVFP4. Outputs need the pass for the scale of a row, since no tile has all of a row. Kernels whose tiles do not end
/// where blocks of scales do need it too. The result is that of the definition, `formats::quantize_row`, bit by bit.
#include "machine/global.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "strategies/gemm/device/fp8_rounding.hpp"
#include "strategies/gemm/device/nvfp4.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

/// The format of the outputs, which says what a scale covers.
enum class QuantizedOutputRows : u8 { fp8_tensor, fp8_row, fp8_block, nvfp4 };

struct QuantizeRowsParams {
  Global<u8> values;    ///< rows of values_stride bytes, slots of `rows` of them
  Global<u8> codes;     ///< strides in bytes
  Global<u8> scales;    ///< that are found: float32, of nvfp4 e4m3; strides in scales
  Global<float> given;  ///< the one scale, or the global one; null for 1
  Global<i32> bounds;   ///< packed: offsets [groups + 1]; slots: counts; null: every row is owned
  Global<i32> row_ids;  ///< gathered
  u64 values_stride = 0;
  u64 codes_stride = 0;
  u64 codes_slot_stride = 0;
  u64 scales_slot_stride = 0;
  u64 scales_row_stride = 0;
  u64 scales_block_stride = 0;
  u32 scales_are_blocked = 0;  ///< of nvfp4, in blocks of 128 rows and 4 scales
  u32 rows = 0;
  u32 columns = 0;
  u32 groups = 0;
  u32 slots = 0;        ///< 1 for slots
  u32 ids_end = 0;      ///< gathered: ids from there on, as unsigned numbers, are of no row
  u32 given_slots = 0;  ///< 1 where each slot is given a scale of its own
  u32 powers_of_two = 0;
};

/// A warp has a piece of a row, and reads it 16 bytes a lane. Where the row has a scale of its own, a block has the
/// row, and its warps take alternating pieces. Elsewhere the block's warps have the same piece of as many rows.
inline constexpr u32 quantize_piece = 512;  ///< values
struct QuantizeShape {
  u32 threads;
  u32 rows;  ///< of a block
};
TH_DEVICE constexpr QuantizeShape quantize_shape(bool row_has_a_scale) {
  return row_has_a_scale ? QuantizeShape{512, 1} : QuantizeShape{128, 4};
}
TH_DEVICE constexpr u32 quantize_pieces(u32 columns) { return (columns + quantize_piece - 1) / quantize_piece; }
/// Returns the bytes of shared memory for what each warp of a row found.
TH_DEVICE constexpr u32 quantize_shared_bytes(bool row_has_a_scale) {
  return row_has_a_scale ? quantize_shape(true).threads / 32 * sizeof(float) : 0;
}

template <QuantizedOutputRows kind, Number number>
class QuantizeRow {
 public:
  TH_DEVICE QuantizeRow(const QuantizeRowsParams& params, u32 slot, u32 row)
      : params_(params),
        slot_(slot),
        row_(row),
        values_(
            params.values.offset(static_cast<i64>((static_cast<u64>(slot) * params.rows + row) * params.values_stride))
                .template as<Element>()),
        codes_(params.codes.offset(static_cast<i64>(slot * params.codes_slot_stride + row * params.codes_stride))),
        first_scale_(first_scale(params, slot, row)),
        largest_(launch::shared_memory().as<float>()) {}

  /// Whether an expert owns the row, as pipeline/grouped/directory.hpp has it. The same in all lanes.
  TH_DEVICE bool is_owned() const {
    if (!params_.row_ids.is_null() && static_cast<u32>(params_.row_ids.load(row_)) >= params_.ids_end) {
      return false;
    }
    if (params_.bounds.is_null()) {
      return true;
    }
    const i32 row = static_cast<i32>(row_);
    if (params_.slots != 0) {
      return row < params_.bounds.load(slot_);
    }
    if (row < params_.bounds.load(0)) {
      return false;
    }
    bool is_before_an_end = false;
    for (u32 group = warp::lane() + 1; group <= params_.groups; group += 32) {
      is_before_an_end = is_before_an_end || row < params_.bounds.load(group);
    }
    return warp::any(is_before_an_end);
  }

  /// All of a row that has a scale of its own, by all warps of the block.
  TH_DEVICE void write_row() const {
    const float scale = fp8_scale(largest_of_row(), params_.powers_of_two);
    if (launch::thread_index() == 0) {
      store_scale(0, scale);
    }
    for_own_pieces([&](u32 piece) { write(piece, scale); });
  }

  TH_DEVICE void write(u32 piece) const {
    write(piece,
          params_.given.is_null() ? 1.0F : params_.given.load(params_.given_slots != 0 ? static_cast<i64>(slot_) : 0));
  }

 private:
  static_assert(number == Number::fp32 || kind == QuantizedOutputRows::fp8_row ||
                kind == QuantizedOutputRows::fp8_block);
  using Values = LaneValues<number>;
  using Element = typename Values::Element;
  using Quotient = conditional<number == Number::fp32, Division, FastDivision>;
  static constexpr u32 width = Values::width;
  static constexpr u32 span = 32 * width;  ///< values of a warp
  static constexpr u32 value_bits = kind == QuantizedOutputRows::nvfp4 ? 4 : 8;
  static constexpr u32 code_bytes = width * value_bits / 8;  ///< of a lane
  using Codes = Vector<u32, (code_bytes + 3) / 4>;
  using Words = Vector<u32, 4>;

  /// Under the scale that is given, or the row's.
  TH_DEVICE void write(u32 piece, float scale) const {
    for_each(piece, [&](const Values& values, u32 first) {
      if constexpr (kind == QuantizedOutputRows::nvfp4) {
        write_nvfp4(values, first, scale);
        return;
      }
      float divisor = scale;
      if constexpr (kind == QuantizedOutputRows::fp8_block) {
        constexpr u32 block_lanes = 128 / width;
        divisor = fp8_scale(largest_of_lanes<block_lanes>(values.largest()), params_.powers_of_two);
        const u32 column = own(first);
        if (warp::lane() % block_lanes == 0 && column < params_.columns) {
          store_scale(column / 128, divisor);
        }
      }
      store(first, values.e4m3(Quotient(divisor)));
    });
  }

  template <class See>
  TH_DEVICE void for_own_pieces(const See& see) const {
    const u32 pieces = quantize_pieces(params_.columns);
    for (u32 piece = warp::index(); piece < pieces; piece += quantize_shape(true).threads / 32) {
      see(piece);
    }
  }

  /// `see(values, first)` for every span of a piece; all are asked for before the first is there.
  template <class See>
  TH_DEVICE void for_each(u32 piece, const See& see) const {
    constexpr u32 together = quantize_piece / span;
    const u32 begin = piece * quantize_piece;
    Words loaded[together];
    if (params_.columns % width == 0 && values_.address % 16 == 0) {
      TH_UNROLL
      for (u32 i = 0; i < together; ++i) {
        loaded[i] = load(begin + i * span);
      }
    } else {
      TH_UNROLL
      for (u32 i = 0; i < together; ++i) {
        loaded[i] = load_singly(begin + i * span);
      }
    }
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (begin + i * span < params_.columns) {
        see(Values(loaded[i]), begin + i * span);
      }
    }
  }

  static TH_DEVICE u32 own(u32 first) { return first + warp::lane() * width; }

  /// 0 behind the row's end, as load_singly.
  TH_DEVICE Words load(u32 first) const {
    const u32 column = own(first);
    return column < params_.columns ? values_.offset(column).template as<Words>().load() : Words{};
  }
  TH_DEVICE Words load_singly(u32 first) const {
    using Bits = conditional<sizeof(Element) == 4, u32, u16>;
    constexpr u32 of_word = 4 / sizeof(Element);
    Words words{};
    const u32 column = own(first);
    TH_UNROLL
    for (u32 i = 0; i < width; ++i) {
      if (column + i < params_.columns) {
        const u32 bits = values_.template as<Bits>().load(column + i);
        words.at[i / of_word] |= bits << (16 * (i % of_word));
      }
    }
    return words;
  }
  /// The same in all threads of the block.
  TH_DEVICE float largest_of_row() const {
    constexpr u32 warps = quantize_shape(true).threads / 32;
    float amax = 0;
    for_own_pieces([&](u32 piece) {
      for_each(piece, [&](const Values& values, u32) { amax = math::max(amax, values.largest()); });
    });
    amax = largest_of_lanes<32>(amax);
    const u32 own_warp = warp::index();
    if (warp::lane() == 0) {
      largest_.store(own_warp, amax);
    }
    block::sync();
    return largest_of_lanes<warps>(largest_.load(warp::lane() % warps));
  }

  /// Where the scales of the row begin, and where that of its block lies.
  static TH_DEVICE u64 first_scale(const QuantizeRowsParams& params, u32 slot, u32 row) {
    const u64 of_slot = slot * params.scales_slot_stride;
    if (params.scales_are_blocked != 0) {
      const u32 along = (params.columns / 16 + 3) / 4;
      return of_slot + static_cast<u64>(row / 128) * along * 512 + row % 32 * 16 + row % 128 / 32 * 4;
    }
    return of_slot + row * params.scales_row_stride;
  }
  TH_DEVICE i64 scale_at(u32 block) const {
    const u64 of_block =
        params_.scales_are_blocked != 0 ? block / 4 * 512 + block % 4 : block * params_.scales_block_stride;
    return static_cast<i64>(first_scale_ + of_block);
  }
  TH_DEVICE void store_scale(u32 block, float scale) const { params_.scales.as<float>().store(scale_at(block), scale); }

  /// Four lanes have what shares a scale. NaN has no code: it makes the scale NaN.
  TH_DEVICE void write_nvfp4(const Values& values, u32 first, float given) const {
    bool has_nan = false;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      has_nan = has_nan || values.at[i] != values.at[i];
    }
    const u32 quad = warp::lane() / 4 * 4;
    has_nan = (warp::ballot(has_nan) >> quad & 0xFU) != 0;
    const float amax = largest_of_lanes<4>(values.largest());
    const u32 code = has_nan ? 0x7FU : convert::floats_to_e4m3x2(amax / (6.0F * given), 0.0F) & 0xFFU;
    const u32 column = own(first);
    if (column < params_.columns && warp::lane() % 4 == 0) {
      params_.scales.store(scale_at(column / 16), static_cast<u8>(code));
    }
    const u32 halves = convert::e4m3x2_to_half2(static_cast<u16>(code));
    const float step = convert::to_float(Half{static_cast<u16>(halves & 0xFFFFU)}) * given;
    u32 codes = 0;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      codes |= e2m1_of(values.at[i] / step, step) << (4 * i);
    }
    store(first, Codes{{codes}});
  }
  static TH_DEVICE u32 e2m1_of(float quotient, float step) {
    if (quotient != quotient || step == 0.0F) {
      return 0;
    }
    const u32 sign = convert::float_bits(quotient) >> 31 << 3;
    return nearest_magnitude(math::abs(quotient)) | sign;
  }

  /// The lane's quantized values, as many as the row has.
  TH_DEVICE void store(u32 first, const Codes& codes) const {
    const u32 column = own(first);
    const Global<u8> at = codes_.offset(column * value_bits / 8);
    if constexpr (code_bytes == sizeof(Codes)) {
      if (column + width <= params_.columns && at.address % code_bytes == 0) {
        at.template as<Codes>().store(0, codes);
        return;
      }
    }
    TH_UNROLL
    for (u32 i = 0; i < code_bytes; ++i) {
      if (column + i * 8 / value_bits < params_.columns) {
        at.store(i, static_cast<u8>(codes.at[i / 4] >> (8 * (i % 4))));
      }
    }
  }

  const QuantizeRowsParams& params_;
  u32 slot_;
  u32 row_;
  Global<Element> values_;  ///< of the row, as all that follows
  Global<u8> codes_;
  u64 first_scale_;
  Shared<float> largest_;
};

template <QuantizedOutputRows kind, Number number>
TH_KERNEL(quantize_shape(kind == QuantizedOutputRows::fp8_row).threads, 1)
quantize_rows_kernel(TH_GRID_CONSTANT const QuantizeRowsParams params) {
  launch::release_dependents();
  const u32 block = launch::block_index().x;
  const u32 pieces = quantize_pieces(params.columns);
  const u32 rows_before = block / pieces;
  launch::wait_for_earlier_grids();
  if constexpr (kind == QuantizedOutputRows::fp8_row) {
    const QuantizeRow<kind, number> of(params, launch::block_index().y, block);
    if (of.is_owned()) {
      of.write_row();
    }
  } else {
    const u32 row = rows_before * quantize_shape(false).rows + warp::index();
    if (row >= params.rows) {
      return;
    }
    const QuantizeRow<kind, number> of(params, launch::block_index().y, row);
    if (of.is_owned()) {
      of.write(block - rows_before * pieces);
    }
  }
}

}  // namespace thresher::strategies::gemm
