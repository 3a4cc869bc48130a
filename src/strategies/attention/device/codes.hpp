#pragma once
/// FP8 values to elements of 16 bits, which hold every FP8 value exactly.
#include "strategies/attention/device/work.hpp"

namespace thresher::strategies::attention {

/// The lower two of four FP8 values as halves, and the upper two; exact.
TH_DEVICE u32 lower_halves(u32 codes) { return convert::e4m3x2_to_half2(static_cast<u16>(codes & 0xFFFFU)); }
TH_DEVICE u32 upper_halves(u32 codes) { return convert::e4m3x2_to_half2(static_cast<u16>(codes >> 16)); }

template <typename Element>
TH_DEVICE float low_of(u32 word) {
  return convert::to_float(Element{static_cast<u16>(word & 0xFFFFU)});
}
template <typename Element>
TH_DEVICE float high_of(u32 word) {
  return convert::to_float(Element{static_cast<u16>(word >> 16)});
}

/// Two halves that hold FP8 values as two elements; exact.
template <typename Element>
TH_DEVICE u32 from_halves(u32 halves) {
  if constexpr (is_same<Element, Half>) {
    return halves;
  } else {
    return convert::pack<Element>(low_of<Half>(halves), high_of<Half>(halves));
  }
}

/// Eight FP8 values of two words as eight elements.
template <typename Element>
TH_DEVICE Vector<u32, 4> widened(u32 first, u32 second) {
  return {{from_halves<Element>(lower_halves(first)), from_halves<Element>(upper_halves(first)),
           from_halves<Element>(lower_halves(second)), from_halves<Element>(upper_halves(second))}};
}

/// A tile of FP8 values [rows, columns] and the same tile as products take it. TMA loads the former in boxes of panels
/// of 64 or 128 bytes. A warp converts 8 rows of 64 columns: each lane reads 16 values at once and writes twice 16
/// bytes.
///
/// Eight lanes that access the banks at once have four pieces of row r and four of row r ^ 5. Bit 2 of the rows sends
/// reads of panels of 128 bytes to different halves of the banks. Bit 0 does so for writes and for panels of 64 bytes.
template <typename Element, int rows, int columns>
struct WidenedTile {
  static constexpr u32 group_rows = 8;
  static constexpr u32 groups = static_cast<u32>(rows) / group_rows;
  static constexpr u32 panel_bytes = columns < 128 ? 64 : 128;  ///< of FP8 values
  static constexpr int panels = columns / 64;                   ///< of elements
  static constexpr int panels_at_once = panels < 2 ? 1 : 2;     ///< of elements that are one panel of FP8 values
  Shared<u8> codes;
  Shared<u8> elements;

  TH_DEVICE static u32 own_row() {
    const u32 lane = warp::lane();
    return (lane / 8) ^ (lane / 4 % 2 * 5);
  }

  /// The whole warp calls it. `cleans`: rows from `there` on become zeros.
  template <bool cleans>
  TH_DEVICE void widen(u32 group, i32 there) const {
    const u32 row = own_row();
    const u32 piece = warp::lane() % 4;
    const bool is_there = !cleans || static_cast<i32>(group * group_rows + row) < there;
    const u32 swizzle = panel_bytes == 128 ? row : row / 2;
    const Shared<u8> from = codes.offset_bytes((group * group_rows + row) * panel_bytes);
    const Shared<u8> to = elements.offset_bytes((group * group_rows + row) * 128);
    TH_NO_UNROLL
    for (int first = 0; first < panels; first += panels_at_once) {
      Vector<u32, 4> own[panels_at_once];
      TH_UNROLL
      for (int i = 0; i < panels_at_once; ++i) {
        const u32 chunk = (static_cast<u32>(i) * 4 + piece) ^ swizzle;
        own[i] = from.offset_bytes(static_cast<u32>(first / panels_at_once * rows) * panel_bytes + chunk * 16)
                     .template as<Vector<u32, 4>>()
                     .load();
      }
      TH_UNROLL
      for (int i = 0; i < panels_at_once; ++i) {
        const Shared<u8> panel = to.offset_bytes(static_cast<u32>((first + i) * rows) * 128);
        TH_UNROLL
        for (u32 half = 0; half < 2; ++half) {
          const u32 low = is_there ? own[i].at[half * 2] : 0;
          const u32 high = is_there ? own[i].at[half * 2 + 1] : 0;
          panel.offset_bytes(((piece * 2 + half) ^ row) * 16)
              .template as<Vector<u32, 4>>()
              .store(0, widened<Element>(low, high));
        }
      }
    }
  }
};

}  // namespace thresher::strategies::attention
