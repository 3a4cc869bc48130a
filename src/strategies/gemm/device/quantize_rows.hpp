#pragma once
/// Quantizes outputs that a product left in float32, to FP8 or NVFP4, in a pass of its own. The pass is for the scale
/// of a row, since no tile has all of a row. It is also for kernels whose tiles do not end where blocks of scales do.
/// It follows the definition, `formats::quantize_row`, operation by operation: divisions are divisions here.
#include "machine/global.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "strategies/gemm/device/nvfp4.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

/// The format of the outputs, which says what a scale covers.
enum class QuantizedOutputRows : u8 { fp8_tensor, fp8_row, fp8_block, nvfp4 };

struct QuantizeRowsParams {
  Global<float> values;  ///< rows of values_stride, slots of `rows` of them
  Global<u8> codes;      ///< strides in bytes
  Global<u8> scales;     ///< that are found: float32, of nvfp4 e4m3; strides in scales
  Global<float> given;   ///< the one scale, or the global one; null for 1
  Global<i32> bounds;    ///< packed: offsets [groups + 1]; slots: counts; null: every row is owned
  Global<i32> row_ids;   ///< gathered
  u64 codes_stride = 0;
  u64 codes_slot_stride = 0;
  u64 scales_slot_stride = 0;
  u64 scales_row_stride = 0;
  u64 scales_block_stride = 0;
  u32 scales_are_blocked = 0;  ///< of nvfp4, in blocks of 128 rows and 4 scales
  u32 values_stride = 0;       ///< a multiple of 4
  u32 rows = 0;
  u32 columns = 0;
  u32 groups = 0;
  u32 slots = 0;        ///< 1 for slots
  u32 ids_end = 0;      ///< gathered: ids from there on, as unsigned numbers, are of no row
  u32 given_slots = 0;  ///< 1 where each slot is given a scale of its own
  u32 powers_of_two = 0;
};

/// A warp has a piece of a row, each lane four outputs in every 128 of it. Where the row has a scale of its own, a
/// block has the row, and its warps take alternating pieces. Elsewhere the block's warps have the same piece of as many
/// rows.
inline constexpr u32 quantize_piece = 512;  ///< outputs
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

template <QuantizedOutputRows kind>
class QuantizeRow {
 public:
  TH_DEVICE QuantizeRow(const QuantizeRowsParams& params, u32 slot, u32 row)
      : params_(params),
        slot_(slot),
        row_(row),
        values_(params.values.offset(
            static_cast<i64>((static_cast<u64>(slot) * params.rows + row) * params.values_stride))),
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
    const float scale = found_fp8(largest_of_row());
    if (warp::index() == 0) {
      store_scale(0, scale);
    }
    for_own_pieces([&](u32 piece) { write(piece, scale); });
  }

  TH_DEVICE void write(u32 piece) const {
    write(piece,
          params_.given.is_null() ? 1.0F : params_.given.load(params_.given_slots != 0 ? static_cast<i64>(slot_) : 0));
  }

 private:
  using Four = Vector<float, 4>;
  static constexpr u32 value_bits = kind == QuantizedOutputRows::nvfp4 ? 4 : 8;

  /// Under the scale that is given, or the row's.
  TH_DEVICE void write(u32 piece, float scale) const {
    for_each(piece, [&](const Four& values, u32 first) {
      if constexpr (kind == QuantizedOutputRows::nvfp4) {
        write_nvfp4(values, first, scale);
        return;
      }
      float divisor = scale;
      if constexpr (kind == QuantizedOutputRows::fp8_block) {
        divisor = found_fp8(largest_of_lanes<32>(largest(values)));
        store_scale(first / 128, divisor);
      }
      store(first, convert::floats_to_e4m3x2(values.at[0] / divisor, values.at[1] / divisor) |
                       static_cast<u32>(convert::floats_to_e4m3x2(values.at[2] / divisor, values.at[3] / divisor))
                           << 16);
    });
  }

  template <class See>
  TH_DEVICE void for_own_pieces(const See& see) const {
    const u32 pieces = quantize_pieces(params_.columns);
    for (u32 piece = warp::index(); piece < pieces; piece += quantize_shape(true).threads / 32) {
      see(piece);
    }
  }

  /// `see(values, first)` for every 128 outputs of a piece; all are asked for before the first is there.
  template <class See>
  TH_DEVICE void for_each(u32 piece, const See& see) const {
    constexpr u32 together = quantize_piece / 128;
    const u32 begin = piece * quantize_piece;
    Four values[together];
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      values[i] = load(begin + i * 128);
    }
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (begin + i * 128 < params_.columns) {
        see(values[i], begin + i * 128);
      }
    }
  }

  static TH_DEVICE u32 own(u32 first) { return first + warp::lane() * 4; }

  /// 0 behind the row's end.
  TH_DEVICE Four load(u32 first) const {
    Four values{};
    const u32 column = own(first);
    if (column < params_.columns) {
      values = values_.offset(column).template as<Four>().load();
      TH_UNROLL
      for (u32 i = 1; i < 4; ++i) {
        values.at[i] = column + i < params_.columns ? values.at[i] : 0.0F;
      }
    }
    return values;
  }

  static TH_DEVICE float largest(const Four& values) {
    return math::max(math::max(math::abs(values.at[0]), math::abs(values.at[1])),
                     math::max(math::abs(values.at[2]), math::abs(values.at[3])));
  }
  template <u32 lanes>
  static TH_DEVICE float largest_of_lanes(float amax) {
    TH_UNROLL
    for (u32 mask = 1; mask < lanes; mask *= 2) {
      amax = math::max(amax, warp::shuffle_xor(amax, mask));
    }
    return amax;
  }
  /// The same in all threads of the block.
  TH_DEVICE float largest_of_row() const {
    constexpr u32 warps = quantize_shape(true).threads / 32;
    float amax = 0;
    for_own_pieces(
        [&](u32 piece) { for_each(piece, [&](const Four& values, u32) { amax = math::max(amax, largest(values)); }); });
    amax = largest_of_lanes<32>(amax);
    const u32 own_warp = warp::index();
    if (warp::lane() == 0) {
      largest_.store(own_warp, amax);
    }
    block::sync();
    return largest_of_lanes<warps>(largest_.load(warp::lane() % warps));
  }

  TH_DEVICE float found_fp8(float amax) const {
    float scale = math::max(amax / 448.0F, 0x1p-126F);
    if (params_.powers_of_two != 0) {
      scale = convert::bits_float((convert::float_bits(scale) + 0x7FFFFFU) & 0x7F800000U);
    }
    return amax == 0.0F ? 1.0F : scale;
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
  TH_DEVICE void store_scale(u32 block, float scale) const {
    if (warp::lane() == 0) {
      params_.scales.as<float>().store(scale_at(block), scale);
    }
  }

  /// Four lanes have what shares a scale. NaN has no code: it makes the scale NaN.
  TH_DEVICE void write_nvfp4(const Four& values, u32 first, float given) const {
    bool has_nan = false;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      has_nan = has_nan || values.at[i] != values.at[i];
    }
    const u32 quad = warp::lane() / 4 * 4;
    has_nan = (warp::ballot(has_nan) >> quad & 0xFU) != 0;
    const float amax = largest_of_lanes<4>(largest(values));
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
    store(first, codes);
  }
  static TH_DEVICE u32 e2m1_of(float quotient, float step) {
    if (quotient != quotient || step == 0.0F) {
      return 0;
    }
    const u32 sign = convert::float_bits(quotient) >> 31 << 3;
    return nearest_magnitude(math::abs(quotient)) | sign;
  }

  /// Four codes of the lane, as many as the row has.
  TH_DEVICE void store(u32 first, u32 codes) const {
    const u32 column = own(first);
    const Global<u8> at = codes_.offset(column * value_bits / 8);
    if constexpr (value_bits == 8) {
      if (column + 4 <= params_.columns && at.address % 4 == 0) {
        at.template as<u32>().store(0, codes);
        return;
      }
    }
    TH_UNROLL
    for (u32 i = 0; i < value_bits / 2; ++i) {
      if (column + i * 8 / value_bits < params_.columns) {
        at.store(i, static_cast<u8>(codes >> (8 * i)));
      }
    }
  }

  const QuantizeRowsParams& params_;
  u32 slot_;
  u32 row_;
  Global<float> values_;  ///< of the row, as all that follows
  Global<u8> codes_;
  u64 first_scale_;
  Shared<float> largest_;
};

template <QuantizedOutputRows kind>
TH_KERNEL(quantize_shape(kind == QuantizedOutputRows::fp8_row).threads, 1)
quantize_rows_kernel(TH_GRID_CONSTANT const QuantizeRowsParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const u32 block = launch::block_index().x;
  if constexpr (kind == QuantizedOutputRows::fp8_row) {
    const QuantizeRow<kind> of(params, launch::block_index().y, block);
    if (of.is_owned()) {
      of.write_row();
    }
  } else {
    const u32 pieces = quantize_pieces(params.columns);
    const u32 rows_before = block / pieces;
    const u32 row = rows_before * quantize_shape(false).rows + warp::index();
    if (row >= params.rows) {
      return;
    }
    const QuantizeRow<kind> of(params, launch::block_index().y, row);
    if (of.is_owned()) {
      of.write(block - rows_before * pieces);
    }
  }
}

}  // namespace thresher::strategies::gemm
