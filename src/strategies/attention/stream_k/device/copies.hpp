#pragma once
/// The producer warps copy keys and values of a chunk from their pages, by TMA in boxes or key by key.
#include "strategies/attention/stream_k/device/work.hpp"

namespace thresher::strategies::attention {

using pipeline::attention::StreamKSlot;

/// Which warps of a block load, and which head and which keys of a chunk each of the others multiplies.
template <StreamKConfig config>
struct StreamKWarps {
  static constexpr u32 heads = static_cast<u32>(config.heads);
  static constexpr u32 warps_per_head = static_cast<u32>(config.head_warps());
  static constexpr u32 loaders = static_cast<u32>(config.loader_warps());
  TH_DEVICE static u32 loader() { return warp::index() - static_cast<u32>(config.warps); }
  TH_DEVICE static u32 head(u32 warp) { return warp / warps_per_head; }
  TH_DEVICE static u32 place(u32 warp) { return warp % warps_per_head; }
};

/// Rows of a box, which TMA loads at once.
TH_DEVICE u32 box_rows(const StreamKParams& params) { return 1U << params.call.paging.box_shift; }

/// The rows of one head in a tile that TMA loaded box by box. A box has its heads one after the other and a head its
/// panels, with chunks of 16 bytes swizzled.
struct BoxedTile {
  Shared<u8> tile;
  u32 row_bytes;
  u32 box_rows;
  u32 heads;
  u32 head;

  TH_DEVICE u32 panel() const {
    return static_cast<u32>(pipeline::attention::panel_bytes_of(static_cast<int>(row_bytes)));
  }
  TH_DEVICE u32 panel_stride() const { return box_rows * panel(); }
  TH_DEVICE Shared<u8> row(u32 index) const {
    const u32 in_box = index & (box_rows - 1);
    return tile.offset_bytes(((index - in_box) * heads + head * box_rows) * row_bytes + in_box * panel());
  }
  /// Exclusively ored with the number of a chunk of 16 bytes in a row.
  TH_DEVICE u32 swizzle(u32 index) const { return panel() == 128 ? index % 8 : index / 2 % 4; }
  TH_DEVICE Shared<u8> chunk(u32 index, u32 at) const {
    const u32 each = panel() / 16;
    return row(index).offset_bytes(at / each * panel_stride() + ((at % each) ^ swizzle(index)) * 16);
  }
};

/// The work of a producer warp. A lane's `Pages` are the page and row of one of 32 boxes, or without TMA those of one
/// key of the next chunk.
template <StreamKConfig config>
class StreamKCopies {
  using Warps = StreamKWarps<config>;

 public:
  struct Pages {
    u32 first_chunk = 0;
    i32 page = 0;
    i32 row = 0;
    i32 next_page = 0;
    i32 next_row = 0;
    u32 flags = 0;  ///< of this lane
  };

  TH_DEVICE explicit StreamKCopies(const StreamKParams& params) : params_(params) {}

  TH_DEVICE void prefetch() const {
    if constexpr (config.boxes) {
      tma::prefetch(params_.call.key_map);
      tma::prefetch(params_.call.value_map);
    }
  }

  /// Prefetches entries of the block table into L2, a few by each thread. They are those of the sequence with which the
  /// block begins where all sequences have equally many keys. Earlier grids may still write some of them.
  TH_DEVICE void prefetch_block_table(u32 own) const {
    constexpr i32 each = 8;  // 32 bytes, the smallest load of L2
    const Paging& paging = params_.call.paging;
    const auto batch = static_cast<u32>(params_.call.batch);
    const u32 sequence = launch::block_index().x * batch / launch::block_count().x;
    const i32 place = static_cast<i32>(own) * each;
    const bool has_keys = batch > 0 && params_.call.keys > 0;
    if (has_keys && place <= quotient(params_.call.keys - 1, paging.page)) {
      Global<i32>{paging.block_table}.prefetch(sequence * paging.table_batch_stride + place * paging.table_page_stride);
    }
  }

  TH_DEVICE Pages pages(const StreamKItem& item, u32 chunk) const {
    Pages pages;
    if (chunk >= item.chunks) {
      return pages;
    }
    if constexpr (config.boxes) {
      const PageRow at = box_at(item, chunk);
      pages.first_chunk = chunk;
      pages.page = at.page;
      pages.row = at.row;
      pages.flags |= at.was_there ? 0U : pages_clamped;
    } else {
      look_up_key(item, pages, chunk);
    }
    return pages;
  }

  TH_DEVICE void copy_chunk(const StreamKItem& item, Pages& pages, u32 chunk, const StreamKSlot& slot) const {
    if constexpr (config.boxes) {
      copy_boxes(item, pages, chunk, slot);
    } else {
      copy_keys(item, pages, chunk, slot);
    }
  }

  /// All lanes of a producer warp call it.
  TH_DEVICE void report(u32 own, u32 flags) const {
    const u32 all = warp::reduce(flags, [](u32 a, u32 b) { return a | b; });
    if (warp::lane() == 0) {
      const u32 block = launch::block_index().x;
      const Global<u32> status{params_.call.paging.status};
      if (block == 0 && own == 0) {
        status.store(0, launch::block_count().x * Warps::loaders);
      }
      status.store(1 + block * Warps::loaders + own, all);
    }
  }

 private:
  TH_DEVICE u32 boxes_per_chunk() const { return static_cast<u32>(config.keys()) >> params_.call.paging.box_shift; }
  TH_DEVICE static i32 first_key(const StreamKItem& item, u32 chunk) {
    return static_cast<i32>(item.first_chunk + chunk) * config.keys();
  }

  /// Box `lane` of the item from chunk `chunk` on; past the keys the last box again.
  TH_DEVICE PageRow box_at(const StreamKItem& item, u32 chunk) const {
    const i32 last = (item.seen.end - 1) >> params_.call.paging.box_shift;
    const i32 first = static_cast<i32>((item.first_chunk + chunk) * boxes_per_chunk());
    return page_row(params_.call.paging, item.tile.batch,
                    least(first + static_cast<i32>(warp::lane()), last) << params_.call.paging.box_shift);
  }

  /// The pages of 32 boxes are looked up at once: again where the chunk's are beyond them.
  TH_DEVICE void look_up_boxes(const StreamKItem& item, Pages& pages, u32 chunk, u32 boxes) const {
    if ((chunk - pages.first_chunk + 1) * boxes > 32) {
      const u32 flags = pages.flags;
      pages = this->pages(item, chunk);
      pages.flags |= flags;
    }
  }

  /// Each lane copies a box where it has keys of a tile of 16 which some row sees; the producer warps alternate.
  TH_DEVICE void copy_boxes(const StreamKItem& item, Pages& pages, u32 chunk, const StreamKSlot& slot) const {
    const u32 boxes = boxes_per_chunk();
    look_up_boxes(item, pages, chunk, boxes);
    const i32 first_key = this->first_key(item, chunk);
    const i32 begin = most(item.seen.begin - first_key, 0) / 16 * 16;
    const i32 end = least(divided_up(item.seen.end - first_key, 16) * 16, config.keys());
    const u32 first_box = static_cast<u32>(begin) >> params_.call.paging.box_shift;
    const u32 end_box = (static_cast<u32>(end) + box_rows(params_) - 1) >> params_.call.paging.box_shift;
    const u32 key_box = box_rows(params_) * Warps::heads * config.key_row_bytes();
    const u32 value_box = box_rows(params_) * Warps::heads * config.value_row_bytes();
    const u32 lane = warp::lane();
    const u32 own_loader = Warps::loader();
    const bool copies = lane >= first_box && lane < end_box && lane % Warps::loaders == own_loader;
    const u32 own_boxes = bits::count_ones(warp::ballot(copies));
    if (lane == 0) {
      slot.expect(own_boxes * key_box, own_boxes * value_box);
    }
    const u32 from = (chunk - pages.first_chunk) * boxes + lane;
    const i32 page = warp::shuffle(pages.page, from % 32);
    const i32 row = warp::shuffle(pages.row, from % 32);
    if (copies) {
      slot.copy_keys(lane * key_box, params_.call.key_map, At{0, row, 0, item.tile.kv_head, page});
      slot.copy_values(lane * value_box, params_.call.value_map, At{0, row, 0, item.tile.kv_head, page});
    }
    warp::sync();
  }

  /// The producer warps alternate over the chunk's keys; a lane knows the place of one of its warp's keys.
  static constexpr u32 keys_per_loader = static_cast<u32>(config.keys()) / Warps::loaders;
  TH_DEVICE void look_up_key(const StreamKItem& item, Pages& pages, u32 chunk) const {
    const i32 key = static_cast<i32>((item.first_chunk + chunk) * config.keys() +
                                     warp::lane() % keys_per_loader * Warps::loaders + Warps::loader());
    const PageRow at = page_row(params_.call.paging, item.tile.batch, clamp(key, item.seen.begin, item.seen.end - 1));
    pages.next_page = at.page;
    pages.next_row = at.row;
    pages.flags |= at.was_there ? 0U : pages_clamped;
  }

  TH_DEVICE void copy_keys(const StreamKItem& item, Pages& pages, u32 chunk, const StreamKSlot& slot) const {
    pages.page = pages.next_page;
    pages.row = pages.next_row;
    if (chunk + 1 < item.chunks) {
      look_up_key(item, pages, chunk + 1);
    }
    copy_rows<config.key_row_bytes()>(item, pages, first_key(item, chunk), params_.call.k, slot.keys);
    slot.keys_asked_for();
    copy_rows<config.value_row_bytes()>(item, pages, first_key(item, chunk), params_.call.v, slot.values);
    slot.values_asked_for();
  }

  template <u32 row_bytes>
  TH_DEVICE void copy_rows(const StreamKItem& item, const Pages& pages, i32 first_key, const Operand& operand,
                           Shared<u8> tile) const {
    constexpr u32 pieces = row_bytes / 16;
    constexpr u32 at_once = 32 / pieces;  // keys
    const u32 own_loader = Warps::loader();
    const u32 lane = warp::lane();
    const BoxedTile to{tile, row_bytes, static_cast<u32>(config.keys()), 1, 0};
    TH_UNROLL
    for (u32 index = 0; index < keys_per_loader; index += at_once) {
      const u32 own = index + lane / pieces;
      const i32 page = warp::shuffle(pages.page, own);
      const i32 row = warp::shuffle(pages.row, own);
      const u32 in_chunk = own * Warps::loaders + own_loader;
      const i32 key = first_key + static_cast<i32>(in_chunk);
      const u32 piece = lane % pieces;
      const i64 offset = element_offset(operand, page, item.tile.kv_head, row) * config.key_bytes + piece * 16;
      async_copy::copy16(to.chunk(in_chunk, piece), Global<u8>{operand.data}.offset(offset),
                         key >= item.seen.begin && key < item.seen.end);
    }
  }

  const StreamKParams& params_;
};

}  // namespace thresher::strategies::attention
