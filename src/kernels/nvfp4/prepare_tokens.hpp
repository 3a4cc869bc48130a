#pragma once
/// Tokens of the exact path to 16 bits, in every call that needs it.
#include "kernels/nvfp4/widen.hpp"
#include "machine/launch.hpp"

namespace thresher::kernels::nvfp4 {

struct WidenTokensParams {
  Matrix tokens;       ///< NVFP4; or 16-bit rows in `values`, copied
  Global<u8> out;      ///< [rows][64·⌈k/64⌉] of 16 bits, zeros beyond k
  u32 row_blocks = 0;  ///< ⌈k/64⌉
  u32 k = 0;
};

inline constexpr u32 widen_threads = 128;
/// Few blocks that do much each: beside the product of the call before, all of them are resident and have asked L2 for
/// their tokens when it ends, and the product that waits for them is let in.
inline constexpr u32 widen_parts = 8;

/// Eight elements of a row.
struct WidenPart {
  u32 row;
  u32 column;  ///< group of 16
  u32 half;
};
/// The parts of this block, by number.
class WidenParts {
 public:
  TH_DEVICE explicit WidenParts(const WidenTokensParams& params)
      : first(static_cast<u64>(machine::launch::block_index().x) * (widen_threads * widen_parts)),
        of_row_(params.row_blocks * (block_k / 8)),
        row_(static_cast<u32>(first / of_row_)),
        begin_(static_cast<u32>(first - static_cast<u64>(row_) * of_row_)) {}
  TH_DEVICE WidenPart at(u32 index) const {
    const u32 eight = begin_ + index;
    const u32 rows = eight / of_row_;
    const u32 in_row = eight - rows * of_row_;
    return {row_ + rows, in_row / 2, in_row % 2};
  }

  const u64 first;

 private:
  u32 of_row_;
  u32 row_;
  u32 begin_;
};

/// A thread makes widen_parts times eight elements; the threads' eights are neighbours.
TH_KERNEL(widen_threads, 8) widen_tokens_kernel(TH_GRID_CONSTANT const WidenTokensParams params) {
  machine::launch::release_dependents();
  const u32 thread = machine::launch::thread_index();
  const WidenParts block(params);
  const auto is_there = [&](const WidenPart& part) {
    return part.row < params.tokens.rows && part.column < params.tokens.scale_columns;
  };
  constexpr u32 parts_a_line = 128 / 4;
  if (thread < widen_threads * widen_parts / parts_a_line) {
    const WidenPart part = block.at(thread * parts_a_line);
    if (is_there(part)) {
      prefetch_group(params.tokens, part.row, part.column);
    }
  }
  WidenPart parts[widen_parts];
  TH_UNROLL
  for (u32 i = 0; i < widen_parts; ++i) {
    parts[i] = block.at(i * widen_threads + thread);
  }
  machine::launch::wait_for_earlier_grids();
  u32 codes[widen_parts];
  u32 scales[widen_parts];
  TH_UNROLL
  for (u32 i = 0; i < widen_parts; ++i) {
    const WidenPart& part = parts[i];
    codes[i] = is_there(part) ? half_group_codes(params.tokens, part.row, part.column, part.half) : 0;
    scales[i] = is_there(part) ? scale_code(params.tokens, part.row, part.column) : 0;
  }
  using Words = machine::Vector<u32, 4>;
  const Global<Words> out = params.out.as<Words>().offset(static_cast<i64>(block.first) + thread);
  TH_UNROLL
  for (u32 i = 0; i < widen_parts; ++i) {
    if (parts[i].row < params.tokens.rows) {
      const u32 scale =
          machine::packed::broadcast<0>(machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(scales[i])));
      const machine::Vector<u32, 2> low = widen_four(codes[i], scale);
      const machine::Vector<u32, 2> high = widen_four(codes[i] >> 16, scale);
      out.store(i * widen_threads, Words{{low.at[0], low.at[1], high.at[0], high.at[1]}});
    }
  }
}

/// One thread copies 8 elements of a row of 16-bit tokens.
TH_KERNEL(widen_threads, 1) pad_tokens_kernel(TH_GRID_CONSTANT const WidenTokensParams params) {
  machine::launch::release_dependents();
  const u32 groups = params.row_blocks * (block_k / 8);
  const u64 index =
      static_cast<u64>(machine::launch::block_index().x) * widen_threads + machine::launch::thread_index();
  const u32 row = static_cast<u32>(index / groups);
  const u32 column = static_cast<u32>(index % groups) * 8;
  machine::launch::wait_for_earlier_grids();
  if (row >= params.tokens.rows) {
    return;
  }
  using machine::u16;
  const Global<u16> from = params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes).as<u16>();
  const Global<u16> to = params.out.as<u16>().offset(static_cast<i64>(row) * groups * 8);
  TH_UNROLL
  for (u32 i = 0; i < 8; ++i) {
    to.store(column + i, column + i < params.k ? from.load(column + i) : u16{0});
  }
}

}  // namespace thresher::kernels::nvfp4
