#pragma once
/// The knobs of the attention skeletons, and what follows from them. The host launches by the same numbers.
#include "machine/types.hpp"

namespace thresher::pipeline::attention {

using namespace thresher::machine;

inline constexpr u32 barrier_bytes = 8;

/// One panel is 64 columns: a row of 128 bytes, the span of the widest swizzle.
inline constexpr int panel_columns = 64;
inline constexpr int panel_row_bytes = 128;

/// Bytes of a row that one wgmma takes: 16 elements of 16 bits or 32 of FP8.
inline constexpr int step_bytes = 32;

/// A tile [rows, columns] of 16-bit elements: panels of 64 columns one after another, rows of 128 bytes, 128-byte
/// swizzle.
TH_DEVICE constexpr u32 tile_bytes(int rows, int columns) { return static_cast<u32>(rows * columns * 2); }

/// The part of a tile that one block of a cluster copies: all keys of some panels, or some keys of all.
struct CopiedShare {
  int panels;
  int keys;
};

/// Bytes of a row in one panel, of rows of so many bytes: the span of the swizzle, and how many panels there are.
TH_DEVICE constexpr int panel_bytes_of(int row_bytes) {
  return row_bytes < panel_row_bytes ? row_bytes : panel_row_bytes;
}
TH_DEVICE constexpr int panels_of(int row_bytes) { return row_bytes / panel_bytes_of(row_bytes); }

/// The rows of a tile that one span of the swizzle covers.
inline constexpr int group_rows = 8;

/// Where the groups of 8 rows of a tile's panels are.
struct TileLayout {
  u32 panel_bytes;  ///< from a panel to the next
  u32 group_bytes;  ///< from a group of 8 rows to the next, in one panel
};
/// Panels one after the other, of so many rows each.
TH_DEVICE constexpr TileLayout by_panels(int rows, int row_bytes = panel_row_bytes) {
  return {static_cast<u32>(rows * row_bytes), static_cast<u32>(group_rows * row_bytes)};
}

struct StreamConfig {
  int head_dim;
  int value_dim;
  int keys;             ///< how many make a block
  int stages;           ///< how many slots the rings of keys and of values have
  int math_warpgroups;  ///< each has 64 query rows
  int multicast;        ///< blocks of a cluster that share keys and values: 1 or 2
  bool queries_in_registers;
  /// Warpgroups issue their products one after another: one's softmax runs beside another's products.
  bool take_turns;
  /// The softmax of a block is done before the wait for the product of the block before it (see attend).
  bool hold_softmax;
  /// An operand's k-steps are addressed by a constant added to the first one's descriptor: fewer instructions before
  /// every product.
  bool base_descriptors = false;
  /// Keys and values come page by page, and values beyond the last key are made zero.
  bool paged = false;
  /// FP8 keys and values come into a ring of so many tiles. Warps that do not multiply convert them into the rings of
  /// keys and of values. 0: they come as they are multiplied.
  int code_tiles = 0;
  /// Queries are FP8 too, and FP8 is multiplied. Keys come as they are multiplied. The ring of FP8 tiles has as many
  /// slots and holds values alone. The other warps transpose those, so that keys are along their rows.
  bool multiplies_codes = false;
  /// With FP8 queries: the next block's scores are computed while a block's weights are multiplied.
  bool scores_ahead = false;
  bool operator==(const StreamConfig&) const = default;

  static constexpr int rows_per_warpgroup = 64;
  static constexpr int widening_warps = 3;  ///< of the producer warpgroup, or rotating ones
  TH_DEVICE constexpr bool has_codes() const { return code_tiles > 0; }
  TH_DEVICE constexpr bool widens() const { return has_codes() && !multiplies_codes; }
  /// Pages of 16 bits. A copy brings whole rows, all their panels, and each group of 8 rows of a tile has its panels
  /// together. Else a tile has its panels one after the other, and a copy brings the rows of one.
  TH_DEVICE constexpr bool copies_whole_rows() const { return paged && !has_codes(); }
  TH_DEVICE constexpr int element_bytes() const { return multiplies_codes ? 1 : 2; }  ///< as it is multiplied
  TH_DEVICE constexpr int stored_bytes() const { return has_codes() ? 1 : 2; }        ///< of a key or value in memory
  /// Instructions along so many columns or keys.
  TH_DEVICE constexpr int steps(int extent) const { return extent * element_bytes() / step_bytes; }
  /// A tile of keys, or of values that are multiplied as 16 bits.
  TH_DEVICE constexpr TileLayout layout(int columns) const {
    const int row_bytes = panel_bytes_of(columns * element_bytes());
    const auto group = static_cast<u32>(group_rows * row_bytes);
    const auto panels = static_cast<u32>(panels_of(columns * element_bytes()));
    return copies_whole_rows() ? TileLayout{group, group * panels} : by_panels(keys, row_bytes);
  }
  TH_DEVICE constexpr int threads() const { return (math_warpgroups + 1) * 128; }
  TH_DEVICE constexpr int rows() const { return math_warpgroups * rows_per_warpgroup; }
  /// A block of the cluster copies whole panels of so many columns of keys or values where there are enough. Else it
  /// copies a share of the rows of the only panel.
  TH_DEVICE constexpr CopiedShare copied(int columns) const {
    const int panels = panels_of(columns * stored_bytes());
    return panels >= multicast ? CopiedShare{panels / multicast, keys} : CopiedShare{panels, keys / multicast};
  }
  /// The accumulators are most of a thread's registers.
  TH_DEVICE constexpr bool is_wide() const { return value_dim > 128; }
  /// The accumulators begin as zeros; else the first product overwrites them.
  TH_DEVICE constexpr bool clears_sums() const { return is_wide() || multiplies_codes; }
  /// A block's product with its values is made for so many columns at a time. With FP8, threads add it to the output:
  /// the tensor cores keep too few bits of a long sum of FP8 products.
  TH_DEVICE constexpr int max_product_columns() const { return math_warpgroups == 3 || scores_ahead ? 64 : 128; }
  TH_DEVICE constexpr int product_columns() const {
    return !multiplies_codes || value_dim <= max_product_columns() ? value_dim : max_product_columns();
  }
  TH_DEVICE constexpr int products() const { return value_dim / product_columns(); }
  /// Warps of the producer warpgroup that copy: a warp issues its copies one after the other, and pages take many. Half
  /// of the warps then copy keys and half values, so that keys do not wait for a slot of values.
  TH_DEVICE constexpr int loading_warps() const { return copies_whole_rows() ? 4 : 1; }
  /// The number of them that copy each block's keys, or each block's values.
  TH_DEVICE constexpr int sharing_warps() const { return copies_whole_rows() ? loading_warps() / 2 : 1; }
  TH_DEVICE constexpr int loader_registers() const {
    return math_warpgroups == 3                                           ? 32
           : widens() || ((paged || has_codes()) && math_warpgroups == 1) ? 56
           : math_warpgroups == 2                                         ? 40
                                                                          : 32;
  }
  TH_DEVICE constexpr int math_registers() const {
    return math_warpgroups == 1 ? 240 : math_warpgroups == 3 ? 160 : widens() ? 224 : 232;
  }

  TH_DEVICE constexpr u32 key_bytes() const { return static_cast<u32>(keys * head_dim * element_bytes()); }
  /// Transposed values have a row for each column in every panel of 128 keys.
  TH_DEVICE constexpr u32 value_bytes() const {
    const int panels = (keys + panel_row_bytes - 1) / panel_row_bytes;
    return multiplies_codes ? static_cast<u32>(panels * value_dim * panel_row_bytes) : tile_bytes(keys, value_dim);
  }
  TH_DEVICE constexpr u32 query_bytes() const { return static_cast<u32>(rows() * head_dim * element_bytes()); }
  /// A slot of the ring of codes, which takes keys and values in turn, or values alone.
  TH_DEVICE constexpr u32 code_tile_bytes() const {
    return static_cast<u32>(keys * (widens() && head_dim > value_dim ? head_dim : value_dim));
  }
  TH_DEVICE constexpr u32 codes_offset() const {
    return query_bytes() + static_cast<u32>(stages) * (key_bytes() + value_bytes());
  }
  TH_DEVICE constexpr u32 barrier_offset() const {
    return codes_offset() + static_cast<u32>(code_tiles) * code_tile_bytes();
  }
  TH_DEVICE constexpr int barriers() const { return 2 + 4 * stages + (has_codes() ? 2 * code_tiles : paged ? 1 : 0); }
  TH_DEVICE constexpr u32 shared_bytes() const {
    return barrier_offset() + static_cast<u32>(barriers()) * barrier_bytes;
  }
};

struct SplitConfig {
  int head_dim;
  int cluster;  ///< blocks that divide the keys and the output's columns: 1, 2, 4 or 8
  /// The host promises one length for all sequences, whole tiles of queries, cluster·256 keys, no mask and no sinks.
  bool whole = false;
  /// A chunk's weights come in so many parts: each is multiplied while the next one's exponentials run. 1, 2 or 4.
  int parts = 1;
  /// The first chunk's largest scores are looked for while the second's product runs. Takes whole tiles and direct
  /// logits: scores that are changed while a product runs would serialise it.
  bool inspect_early = false;
  /// Partial results are divided by their sums and sent in 16 bits.
  bool narrow_exchange = false;
  /// The blocks of a cluster meet while their first copies are under way, not when they exchange.
  bool meet_early = false;
  /// So much shared memory that no second block fits on a multiprocessor: with dependent launch the next call's blocks
  /// then start where these have ended.
  bool alone = false;
  bool operator==(const SplitConfig&) const = default;

  static constexpr int rows = 64;
  static constexpr int chunk = 128;  ///< keys of one product
  static constexpr int chunks = 2;
  static constexpr int threads = 128;

  TH_DEVICE constexpr int merged_columns() const { return head_dim / cluster; }
  /// Groups of 8 columns for a thread's two rows that one message of 16 bytes holds.
  TH_DEVICE constexpr int groups_per_message() const { return narrow_exchange ? 2 : 1; }
  /// One more holds the rows' maxima and sums.
  TH_DEVICE constexpr int messages() const { return merged_columns() / 8 / groups_per_message() + 1; }
  TH_DEVICE constexpr u32 message_bytes() const { return static_cast<u32>(threads) * 16; }
  TH_DEVICE constexpr u32 sent_bytes() const { return static_cast<u32>(messages()) * message_bytes(); }
  TH_DEVICE constexpr u32 query_bytes() const { return tile_bytes(rows, head_dim); }
  TH_DEVICE constexpr u32 chunk_bytes() const { return tile_bytes(chunk, head_dim); }
  TH_DEVICE constexpr u32 merge_offset() const { return query_bytes() + 2 * chunks * chunk_bytes(); }
  TH_DEVICE constexpr u32 barrier_offset() const {
    return merge_offset() + static_cast<u32>(cluster - 1) * sent_bytes();
  }
  TH_DEVICE constexpr u32 shared_bytes() const {
    constexpr u32 more_than_half = 116 * 1024;
    const u32 used = barrier_offset() + 5 * barrier_bytes;
    return alone && used < more_than_half ? more_than_half : used;
  }
};

/// A paged KV cache and few queries of many sequences. Every block processes as many chunks of keys as any other, or as
/// any other of its cluster.
struct StreamKConfig {
  int head_dim;
  int value_dim;
  int rows;       ///< query rows of a tile for each head of keys: queries of the heads of a group
  int warps;      ///< that multiply; each takes 16 keys of a chunk
  int stages;     ///< slots of the ring, a chunk of keys and its values each
  int key_bytes;  ///< of an element of keys and values
  /// Pages come by TMA, in boxes of a power of two of keys; else each key by 16-byte copies of threads.
  bool boxes = true;
  /// A block takes no fewer chunks than this where it takes any. Without clusters, as `aligned`.
  int least_chunks = 1;
  /// Where all tiles have as many chunks, blocks take whole tiles, or share a tile of their own.
  bool aligned = true;
  /// Heads of keys that a chunk has, one behind the other. Rows narrower than what L2 loads at a time come with those
  /// of the next head. As many warps for each.
  int heads = 1;
  /// So many blocks share the chunks of some tiles and merge them through each other's shared memory. With 1 all blocks
  /// share the chunks of all tiles, and a second launch merges their parts.
  int cluster = 1;
  /// No cluster has more than one tile.
  bool single_tiles = false;
  bool operator==(const StreamKConfig&) const = default;

  static constexpr int keys_per_warp = 16;
  static constexpr int merged_rows = 8;  ///< that the warps of a head merge at a time
  TH_DEVICE constexpr int head_warps() const { return warps / heads; }
  TH_DEVICE constexpr int keys() const { return head_warps() * keys_per_warp; }
  /// Query rows of a tile, of all its heads of keys.
  TH_DEVICE constexpr int tile_rows() const { return rows * heads; }
  TH_DEVICE constexpr bool is_clustered() const { return cluster > 1; }
  /// Clusters that take several tiles each take them in the order of their sequences' lengths.
  TH_DEVICE constexpr bool is_sorted() const { return is_clustered() && !single_tiles; }
  /// Several, since each issues its copies one after the other.
  TH_DEVICE constexpr int loader_warps() const { return boxes || warps > 4 || rows > 8 ? 4 : 8; }
  TH_DEVICE constexpr int threads() const { return (warps + loader_warps()) * 32; }
  TH_DEVICE constexpr u32 key_row_bytes() const { return static_cast<u32>(head_dim * key_bytes); }
  TH_DEVICE constexpr u32 value_row_bytes() const { return static_cast<u32>(value_dim * key_bytes); }
  TH_DEVICE constexpr u32 key_tile_bytes() const { return static_cast<u32>(keys() * heads) * key_row_bytes(); }
  TH_DEVICE constexpr u32 slot_bytes() const {
    return key_tile_bytes() + static_cast<u32>(keys() * heads) * value_row_bytes();
  }
  /// The extent of a row in the memory where warps merge: lanes that are rows apart access different banks.
  TH_DEVICE constexpr u32 merged_row_floats() const { return static_cast<u32>(value_dim) + 4; }
  TH_DEVICE constexpr u32 merge_offset() const { return static_cast<u32>(stages) * slot_bytes(); }
  TH_DEVICE constexpr u32 merge_bytes() const {
    return static_cast<u32>(warps * merged_rows) * merged_row_floats() * 4;
  }
  /// A maximum and a sum of each row from each warp.
  TH_DEVICE constexpr u32 sums_offset() const { return merge_offset() + merge_bytes(); }
  /// Parts of the rows that a block merges, of one tile or two: float32 outputs, then a maximum and a sum of each.
  TH_DEVICE constexpr u32 parts_offset() const { return sums_offset() + static_cast<u32>(warps * rows) * 8; }
  TH_DEVICE constexpr u32 part_bytes() const { return static_cast<u32>(value_dim) * 4 + 8; }
  /// At most, of one tile: as many from each of its blocks as the block with the most rows merges. Its rows are merged
  /// by a power of two of its blocks, so by all of them or by more than half.
  TH_DEVICE constexpr u32 tile_parts() const {
    if (!is_clustered()) {
      return 0;
    }
    const int of_more_than_half = 2 * tile_rows() - tile_rows() / (cluster / 2);
    return static_cast<u32>(of_more_than_half < cluster ? cluster : of_more_than_half);
  }
  TH_DEVICE constexpr u32 parts() const { return single_tiles ? tile_parts() : 2 * tile_parts(); }
  TH_DEVICE constexpr u32 barrier_offset() const { return parts_offset() + parts() * part_bytes(); }
  TH_DEVICE constexpr u32 barriers() const { return 3 * static_cast<u32>(stages) + (is_clustered() ? 1 : 0); }
  TH_DEVICE constexpr u32 directory_offset() const { return barrier_offset() + barriers() * barrier_bytes; }
  /// Words of the directory: of each sequence, and two of all of them. Where they are sorted, also their number.
  TH_DEVICE constexpr u32 sequence_words() const { return is_sorted() ? 5 : 4; }
  TH_DEVICE constexpr u32 shared_bytes(u32 sequences) const {
    return (directory_offset() + (sequence_words() * sequences + 2) * 4 + 15) / 16 * 16;
  }
};

}  // namespace thresher::pipeline::attention
