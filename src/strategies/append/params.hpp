#pragma once
/// The parameter of the kernel that appends, and the work of its blocks.
#include "machine/global.hpp"

namespace thresher::strategies::append {

using namespace thresher::machine;

inline constexpr u32 threads = 128;
/// Columns of one access: 16 bytes of the rows' formats.
inline constexpr u32 piece_columns = 8;

/// The columns that are rotated as a pair. `halves` has p and p + rotary_dim/2, a piece of each at a time.
/// `single_halves` takes one such pair at a time, where rotary_dim/2 is no multiple of a piece. `interleaved` has 2p
/// and 2p + 1.
enum class Turn : u8 { none, halves, single_halves, interleaved };

/// [tokens, heads, columns] of 16-bit elements; strides in elements, multiples of a piece. Null: no tensor.
struct Rows {
  u64 data;
  i64 token_stride;
  i64 head_stride;
};

/// [pages, page, heads, columns]. Strides in elements, multiples of 16 bytes.
struct Pool {
  u64 data;
  i64 page_stride;
  i64 row_stride;
  i64 head_stride;
  u64 descale;  ///< float32, one for each head, descale_stride elements apart; null: 1
  i64 descale_stride;
};

/// A number for each token.
struct Numbers {
  u64 data;
  u32 words;  ///< of 32 bits
};

struct AppendParams {
  Rows q, q_out, k, k_out, v;
  Pool k_cache, v_cache;
  Numbers positions, slots;
  i64 last_position;  ///< later ones are clamped to it
  i64 slots_end;      ///< the number of rows of all pages
  i64 page_size;
  u64 table;  ///< float32 [positions, rotary_dim], cosines, then sines; null: the angles follow from theta
  i64 table_stride;
  double log_step;  ///< pair p turns by position · e^(p · log_step)
  u32 heads;
  u32 kv_heads;
  u32 head_dim;
  u32 value_dim;
  u32 rotary_dim;
};

/// Shared memory for cosine and sine of each pair.
TH_DEVICE constexpr u32 shared_bytes(u32 rotary_dim) { return rotary_dim / 2 * 8; }

/// Pieces of work of a row of queries or keys.
TH_DEVICE constexpr u32 items_of_row(Turn turn, u32 head_dim, u32 rotary_dim) {
  const u32 unturned = head_dim - rotary_dim;
  return turn == Turn::halves          ? (rotary_dim / 2 + unturned) / piece_columns
         : turn == Turn::single_halves ? rotary_dim / 2 + unturned
                                       : head_dim / piece_columns;
}

}  // namespace thresher::strategies::append
