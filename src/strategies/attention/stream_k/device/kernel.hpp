#pragma once
/// `stream_k`: keys and values in pages, few queries a sequence. Products are of one warp (mma), keys along M, so that
/// few query rows waste little: S^T = K·Q^T, O^T = V^T·P^T. FP8 keys and values become halves in registers, exactly,
/// and queries in bfloat16 halves too, after a power of two that brings their row's largest near one: what of a query
/// is less than 2^-14 of that keeps 2^-25 of it.
#include "strategies/attention/device/codes.hpp"
#include "strategies/attention/stream_k/device/cluster_rows.hpp"
#include "strategies/attention/stream_k/device/rows.hpp"

namespace thresher::strategies::attention {

using pipeline::attention::Extent;
using pipeline::attention::ItemShare;
using pipeline::attention::PartPlace;
using pipeline::attention::StreamKMemory;
using pipeline::attention::StreamKSlot;

/// Where a head's rows lie in a tile that the copy engine brought box by box, each box head by head and panel by panel,
/// chunks of 16 bytes swizzled.
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
  /// By what the number of a chunk of 16 bytes is changed in this row.
  TH_DEVICE u32 swizzle(u32 index) const { return panel() == 128 ? index % 8 : index / 2 % 4; }
  TH_DEVICE Shared<u8> chunk(u32 index, u32 at) const {
    const u32 each = panel() / 16;
    return row(index).offset_bytes(at / each * panel_stride() + ((at % each) ^ swizzle(index)) * 16);
  }
};

template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement>
struct StreamKAttention {
  using Item = StreamKItem;
  static constexpr bool fp8 = is_same<KeyElement, E4M3>;
  static constexpr bool fp8_queries = is_same<QueryElement, E4M3>;
  /// Of the products' operands.
  using Multiplied = Conditional<fp8, Half, Element>;
  static constexpr int groups = config.rows / 8;
  static constexpr int key_steps = config.head_dim / 16;
  static constexpr int value_steps = config.value_dim / 16;
  static constexpr int owned = config.value_dim / 32;
  static_assert(config.key_bytes == (fp8 ? 1 : 2));
  const StreamKParams& params;

  /// Thread t of a warp has, of each group of 8 rows, rows 2(t%4) and +1; of the output the values' columns that
  /// `column` names.
  struct Sums {
    matrix::Tiles<2> queries[key_steps][groups];
    float output[value_steps][groups][4];
    float shift[groups][2];
    float sum[groups][2];     ///< of this thread's keys only
    float factor[groups][2];  ///< of dot products
    float descale;            ///< of dot products with FP8 keys
  };

  /// Page and row of 32 boxes, one a lane; or without the copy engine of the lane's keys of the next chunk.
  struct Pages {
    u32 first_chunk = 0;
    i32 page = 0;
    i32 row = 0;
    i32 next_page = 0;
    i32 next_row = 0;
    u32 flags = 0;  ///< of this lane
  };

  TH_DEVICE static KeyDirectory<config> directory_of(const StreamKParams& params, Shared<u32> memory) {
    return KeyDirectory<config>(params, memory);
  }

  TH_DEVICE void prefetch() const {
    if constexpr (config.boxes) {
      tma::prefetch(params.call.key_map);
      tma::prefetch(params.call.value_map);
    }
  }
  /// The table's entries for the sequence with which the block begins where all have as many keys, a few by each
  /// thread, into L2: what earlier grids may still write comes there too.
  TH_DEVICE void foresee(u32 own) const {
    constexpr i32 each = 8;  // 32 bytes, the least that L2 brings
    const Paging& paging = params.call.paging;
    const auto batch = static_cast<u32>(params.call.batch);
    const u32 sequence = launch::block_index().x * batch / launch::block_count().x;
    const i32 place = static_cast<i32>(own) * each;
    const bool has_keys = batch > 0 && params.call.keys > 0;
    if (has_keys && place <= quotient(params.call.keys - 1, paging.page)) {
      Global<i32>{paging.block_table}.prefetch(sequence * paging.table_batch_stride + place * paging.table_page_stride);
    }
  }
  TH_DEVICE u32 describe(Shared<u32> memory) const { return directory_of(params, memory).make(); }
  static constexpr u32 loaders = static_cast<u32>(config.loader_warps());
  TH_DEVICE static u32 loader() { return warp::index() - static_cast<u32>(config.warps); }

  /// All lanes of a loading warp.
  TH_DEVICE void report(u32 own, u32 flags) const {
    const u32 all = warp::reduce(flags, [](u32 a, u32 b) { return a | b; });
    if (warp::lane() == 0) {
      const u32 block = launch::block_index().x;
      const Global<u32> status{params.call.paging.status};
      if (block == 0 && own == 0) {
        status.store(0, launch::block_count().x * loaders);
      }
      status.store(1 + block * loaders + own, all);
    }
  }
  TH_DEVICE Extent extent(Shared<u32> memory) const { return directory_of(params, memory).extent(); }
  TH_DEVICE Item find(Shared<u32> memory, u32 unit) const { return directory_of(params, memory).find(unit); }
  TH_DEVICE Item next(Shared<u32> memory, const Item& item) const { return directory_of(params, memory).next(item); }

  // ---- copying

  TH_DEVICE u32 box_rows() const { return 1U << params.call.paging.box_shift; }
  TH_DEVICE u32 boxes_of_chunk() const { return static_cast<u32>(config.keys()) >> params.call.paging.box_shift; }

  /// Of box `lane` from chunk `chunk` of the item on; past the keys the last box again.
  TH_DEVICE PageRow box_at(const Item& item, u32 chunk) const {
    const i32 last = (item.seen.end - 1) >> params.call.paging.box_shift;
    const i32 first = static_cast<i32>((item.first_chunk + chunk) * boxes_of_chunk());
    return page_row(params.call.paging, item.tile.batch,
                    least(first + static_cast<i32>(warp::lane()), last) << params.call.paging.box_shift);
  }

  TH_DEVICE Pages pages(const Item& item, u32 chunk) const {
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
      take_key(item, pages, chunk);
    }
    return pages;
  }

  TH_DEVICE void copy(const Item& item, Pages& pages, u32 chunk, const StreamKSlot& slot) const {
    if constexpr (config.boxes) {
      copy_boxes(item, pages, chunk, slot);
    } else {
      copy_keys(item, pages, chunk, slot);
    }
  }

  /// Boxes with keys that a tile of 16 has which some row sees, by a lane each, in turn over the loading warps.
  TH_DEVICE void copy_boxes(const Item& item, Pages& pages, u32 chunk, const StreamKSlot& slot) const {
    const u32 boxes = boxes_of_chunk();
    if ((chunk - pages.first_chunk + 1) * boxes > 32) {
      const u32 flags = pages.flags;
      pages = this->pages(item, chunk);
      pages.flags |= flags;
    }
    const i32 first_key = static_cast<i32>(item.first_chunk + chunk) * config.keys();
    const i32 begin = most(item.seen.begin - first_key, 0) / 16 * 16;
    const i32 end = least(divided_up(item.seen.end - first_key, 16) * 16, config.keys());
    const u32 first_box = static_cast<u32>(begin) >> params.call.paging.box_shift;
    const u32 end_box = (static_cast<u32>(end) + box_rows() - 1) >> params.call.paging.box_shift;
    const u32 key_box = box_rows() * heads * config.key_row_bytes();
    const u32 value_box = box_rows() * heads * config.value_row_bytes();
    const u32 lane = warp::lane();
    const u32 own_loader = loader();
    const bool copies = lane >= first_box && lane < end_box && lane % loaders == own_loader;
    const u32 own_boxes = bits::count_ones(warp::ballot(copies));
    if (lane == 0) {
      slot.expect(own_boxes * key_box, own_boxes * value_box);
    }
    const u32 from = (chunk - pages.first_chunk) * boxes + lane;
    const i32 page = warp::shuffle(pages.page, from % 32);
    const i32 row = warp::shuffle(pages.row, from % 32);
    if (copies) {
      slot.copy_keys(lane * key_box, params.call.key_map, At{0, row, 0, item.tile.kv_head, page});
      slot.copy_values(lane * value_box, params.call.value_map, At{0, row, 0, item.tile.kv_head, page});
    }
    warp::sync();
  }

  /// The loading warps copy the chunk's keys in turn; a lane knows the place of one of its warp's.
  static constexpr u32 keys_of_loader = static_cast<u32>(config.keys()) / loaders;
  TH_DEVICE void take_key(const Item& item, Pages& pages, u32 chunk) const {
    const i32 key = static_cast<i32>((item.first_chunk + chunk) * config.keys() +
                                     warp::lane() % keys_of_loader * loaders + loader());
    const PageRow at = page_row(params.call.paging, item.tile.batch, clamp(key, item.seen.begin, item.seen.end - 1));
    pages.next_page = at.page;
    pages.next_row = at.row;
    pages.flags |= at.was_there ? 0U : pages_clamped;
  }

  TH_DEVICE void copy_keys(const Item& item, Pages& pages, u32 chunk, const StreamKSlot& slot) const {
    pages.page = pages.next_page;
    pages.row = pages.next_row;
    if (chunk + 1 < item.chunks) {
      take_key(item, pages, chunk + 1);
    }
    const i32 first_key = static_cast<i32>(item.first_chunk + chunk) * config.keys();
    copy_rows<config.key_row_bytes()>(item, pages, first_key, params.call.k, slot.keys);
    slot.keys_asked_for();
    copy_rows<config.value_row_bytes()>(item, pages, first_key, params.call.v, slot.values);
    slot.values_asked_for();
  }

  template <u32 row_bytes>
  TH_DEVICE void copy_rows(const Item& item, const Pages& pages, i32 first_key, const Operand& operand,
                           Shared<u8> tile) const {
    constexpr u32 pieces = row_bytes / 16;
    constexpr u32 at_once = 32 / pieces;  // keys
    const u32 own_loader = loader();
    const u32 lane = warp::lane();
    const BoxedTile to{tile, row_bytes, static_cast<u32>(config.keys()), 1, 0};
    TH_UNROLL
    for (u32 index = 0; index < keys_of_loader; index += at_once) {
      const u32 own = index + lane / pieces;
      const i32 page = warp::shuffle(pages.page, own);
      const i32 row = warp::shuffle(pages.row, own);
      const u32 in_chunk = own * loaders + own_loader;
      const i32 key = first_key + static_cast<i32>(in_chunk);
      const u32 piece = lane % pieces;
      const i64 offset = element_offset(operand, page, item.tile.kv_head, row) * config.key_bytes + piece * 16;
      async_copy::copy16(to.chunk(in_chunk, piece), Global<u8>{operand.data}.offset(offset),
                         key >= item.seen.begin && key < item.seen.end);
    }
  }

  // ---- multiplying

  static constexpr u32 heads = static_cast<u32>(config.heads);
  static constexpr u32 head_warps = static_cast<u32>(config.head_warps());
  /// Whose keys a warp multiplies, and which of that head's warps it is.
  TH_DEVICE static u32 head_of(u32 warp) { return warp / head_warps; }
  TH_DEVICE static u32 place_of(u32 warp) { return warp % head_warps; }

  TH_DEVICE void ask_for_queries(const Item& item, Sums& sums) const {
    const Params& call = params.call;
    const QueryTile tile = item.tile.of_head(head_of(warp::index()));
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      const u32 row = static_cast<u32>(group) * 8 + warp::lane() / 4;
      const bool is_there = row < item.rows;
      const u32 known = is_there ? row : 0;
      const auto from = Global<Bits<QueryElement>>{call.q.data}.offset(
          element_offset(call.q, 0, tile.head(params, known), tile.first_query + tile.query(params, known)));
      TH_UNROLL
      for (int step = 0; step < key_steps; ++step) {
        sums.queries[step][group] = is_there ? query_words(from.offset(step * 16)) : matrix::Tiles<2>{};
      }
    }
    if constexpr (fp8) {
      sums.descale = dot_descale<QueryElement, KeyElement>(params.call, tile.batch, tile.kv_head);
    }
  }

  TH_DEVICE void begin(Sums& sums) const {
    const u32 lane = warp::lane();
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        sums.shift[group][side] = -largest_float;
        sums.sum[group][side] = 0.0F;
      }
      TH_UNROLL
      for (int step = 0; step < value_steps; ++step) {
        TH_UNROLL
        for (int i = 0; i < 4; ++i) {
          sums.output[step][group][i] = 0.0F;
        }
      }
    }
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      if constexpr (fp8) {
        const float factor =
            is_same<Element, BFloat16> && !fp8_queries ? sums.descale * to_halves(sums, group) : sums.descale;
        TH_UNROLL
        for (int side = 0; side < 2; ++side) {
          sums.factor[group][side] = warp::shuffle(factor, (lane % 4 * 2 + static_cast<u32>(side)) * 4);
        }
      } else {
        sums.factor[group][0] = 1.0F;
        sums.factor[group][1] = 1.0F;
      }
    }
  }

  /// A group's queries, of which four neighbouring lanes have a row; gives what they are to be multiplied by again.
  TH_DEVICE static float to_halves(Sums& sums, int group) {
    float largest = 0.0F;
    const auto each_word = [&](const auto& use) {
      TH_UNROLL
      for (int step = 0; step < key_steps; ++step) {
        TH_UNROLL
        for (int word = 0; word < 2; ++word) {
          u32& own = sums.queries[step][group].word[word];
          use(own, low_of<Element>(own), high_of<Element>(own));
        }
      }
    };
    const auto size = [](float value) { return math::abs(value) <= largest_float ? math::abs(value) : 0.0F; };
    each_word([&](u32&, float low, float high) { largest = math::max(largest, math::max(size(low), size(high))); });
    largest = math::max(largest, warp::shuffle_xor(largest, 1));
    largest = math::max(largest, warp::shuffle_xor(largest, 2));
    const u32 power = static_cast<u32>(clamp(static_cast<i32>(convert::float_bits(largest) >> 23), 1, 253));
    const float inverse = convert::bits_float((254 - power) << 23);
    each_word([&](u32& own, float low, float high) { own = convert::pack<Half>(low * inverse, high * inverse); });
    return convert::bits_float(power << 23);
  }

  /// In the order of the keys' elements: codes come four together to a thread.
  TH_DEVICE static matrix::Tiles<2> query_words(Global<Bits<QueryElement>> from) {
    const i32 own = static_cast<i32>(warp::lane() % 4);
    if constexpr (fp8_queries) {
      const u32 codes = from.offset(own * 4).template as<u32>().load();
      return {{lower_halves(codes), upper_halves(codes)}};
    } else if constexpr (fp8) {
      const auto words = from.offset(own * 4).template as<Vector<u32, 2>>().load();
      return {{words.at[0], words.at[1]}};
    } else {
      return {{from.offset(own * 2).template as<u32>().load(), from.offset(own * 2 + 8).template as<u32>().load()}};
    }
  }

  TH_DEVICE void absorb(const Item& item, Sums& sums, u32 chunk, const StreamKSlot& slot) const {
    const u32 warp = warp::index();
    const i32 first_key = static_cast<i32>(item.first_chunk + chunk) * config.keys() +
                          static_cast<i32>(place_of(warp)) * StreamKConfig::keys_per_warp;
    const bool takes_part = first_key < item.seen.end && first_key + StreamKConfig::keys_per_warp > item.seen.begin;
    float scores[groups][4];
    const bool is_whole =
        first_key >= item.seen_by_all.begin && first_key + StreamKConfig::keys_per_warp <= item.seen_by_all.end;
    matrix::Tiles<2> weights[groups];
    slot.wait_for_keys();
    if (takes_part) {
      score(sums, slot.keys, warp, scores);
      if (!is_whole) {
        mask(item, first_key, scores);
      }
      weigh(sums, scores, weights);
    }
    slot.wait_for_values();
    if (takes_part) {
      if (is_whole) {
        accumulate<false>(item, sums, slot.values, warp, first_key, weights);
      } else {
        accumulate<true>(item, sums, slot.values, warp, first_key, weights);
      }
    }
  }

  /// Exponents of 16 keys.
  TH_DEVICE void score(const Sums& sums, Shared<u8> keys, u32 warp, float (&scores)[groups][4]) const {
    const u32 lane = warp::lane();
    const u32 row = place_of(warp) * StreamKConfig::keys_per_warp + lane % 16;
    const BoxedTile tile{keys, config.key_row_bytes(), box_rows(), heads, head_of(warp)};
    float other[groups][4];  // a second chain of sums
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[group][i] = 0.0F;
        other[group][i] = 0.0F;
      }
    }
    constexpr int steps_at_once = fp8 ? 2 : 1;
    TH_UNROLL
    for (int step = 0; step < key_steps; step += steps_at_once) {
      const u32 at = static_cast<u32>(step / steps_at_once) * 2 + lane / 16;
      const matrix::Tiles<4> words = matrix::load<4>(tile.chunk(row, at));
      if constexpr (fp8) {
        const matrix::Tiles<4> first{{lower_halves(words.word[0]), lower_halves(words.word[1]),
                                      upper_halves(words.word[0]), upper_halves(words.word[1])}};
        const matrix::Tiles<4> second{{lower_halves(words.word[2]), lower_halves(words.word[3]),
                                       upper_halves(words.word[2]), upper_halves(words.word[3])}};
        TH_UNROLL
        for (int group = 0; group < groups; ++group) {
          matrix::multiply<Multiplied>(scores[group], first, sums.queries[step][group]);
          matrix::multiply<Multiplied>(other[group], second, sums.queries[step + 1][group]);
        }
      } else {
        TH_UNROLL
        for (int group = 0; group < groups; ++group) {
          matrix::multiply<Multiplied>(step % 2 == 0 ? scores[group] : other[group], words, sums.queries[step][group]);
        }
      }
    }
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[group][i] =
            exponent_of<logits>(params.call, scores[group][i] + other[group][i], sums.factor[group][i % 2]);
      }
    }
  }

  TH_DEVICE void mask(const Item& item, i32 first_key, float (&scores)[groups][4]) const {
    const u32 lane = warp::lane();
    const i32 key = first_key + static_cast<i32>(lane / 4);
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const u32 row = static_cast<u32>(group) * 8 + lane % 4 * 2 + static_cast<u32>(side);
        const Visible visible = item.tile.visible(params, item.tile.query(params, row));
        scores[group][side] = key >= visible.begin && key < visible.end ? scores[group][side] : minus_infinity();
        scores[group][side + 2] =
            key + 8 >= visible.begin && key + 8 < visible.end ? scores[group][side + 2] : minus_infinity();
      }
    }
  }

  /// A row's shift follows its largest exponent only when that is so far ahead, as in `pipelined`.
  static constexpr float slack = 8.0F;

  TH_DEVICE void weigh(Sums& sums, float (&scores)[groups][4], matrix::Tiles<2> (&weights)[groups]) const {
    bool ahead = false;
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        ahead = ahead || math::max(scores[group][side], scores[group][side + 2]) > sums.shift[group][side] + slack;
      }
    }
    if (warp::any(ahead)) {
      follow(sums, scores);
    }
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[group][i] = math::exp2_approx(scores[group][i] - sums.shift[group][i % 2]);
        sums.sum[group][i % 2] += scores[group][i];
      }
      weights[group] = {{matrix::transpose(convert::pack<Multiplied>(scores[group][0], scores[group][1])),
                         matrix::transpose(convert::pack<Multiplied>(scores[group][2], scores[group][3]))}};
    }
  }

  /// Over the lanes that hold keys of the same rows.
  template <typename Combine>
  TH_DEVICE static float over_keys(float value, const Combine& combine) {
    TH_UNROLL
    for (u32 distance = 4; distance < 32; distance *= 2) {
      value = combine(value, warp::shuffle_xor(value, distance));
    }
    return value;
  }

  TH_DEVICE void follow(Sums& sums, const float (&scores)[groups][4]) const {
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const float largest = finite(over_keys(math::max(scores[group][side], scores[group][side + 2]),
                                               [](float a, float b) { return math::max(a, b); }));
        float& shift = sums.shift[group][side];
        const float next = largest > shift + slack ? largest : shift;
        const float factor = math::exp2_approx(shift - next);
        shift = next;
        sums.sum[group][side] *= factor;
        TH_UNROLL
        for (int step = 0; step < value_steps; ++step) {
          sums.output[step][group][side] *= factor;
          sums.output[step][group][side + 2] *= factor;
        }
      }
    }
  }

  /// Values of keys that nobody sees may be anything: `cleans` makes them zeros.
  template <bool cleans>
  TH_DEVICE void accumulate(const Item& item, Sums& sums, Shared<u8> values, u32 warp, i32 first_key,
                            const matrix::Tiles<2> (&weights)[groups]) const {
    const u32 lane = warp::lane();
    const u32 row = place_of(warp) * StreamKConfig::keys_per_warp + lane % 8 + lane / 16 * 8;
    const BoxedTile tile{values, config.value_row_bytes(), box_rows(), heads, head_of(warp)};
    u32 kept[2] = {};
    if constexpr (cleans) {
      TH_UNROLL
      for (i32 half = 0; half < 2; ++half) {
        const i32 key = first_key + half * 8 + static_cast<i32>(lane % 4) * 2;
        kept[half] = (key >= item.seen.begin && key < item.seen.end ? 0xFFFFU : 0U) |
                     (key + 1 >= item.seen.begin && key + 1 < item.seen.end ? 0xFFFF0000U : 0U);
      }
    }
    constexpr int steps_at_once = fp8 ? 2 : 1;
    TH_UNROLL
    for (int step = 0; step < value_steps; step += steps_at_once) {
      const u32 at = static_cast<u32>(step / steps_at_once) * 2 + lane / 8 % 2;
      matrix::Tiles<4> words = matrix::load_transposed<4>(tile.chunk(row, at));
      if constexpr (cleans) {
        TH_UNROLL
        for (int i = 0; i < 4; ++i) {
          words.word[i] &= kept[i / 2];
        }
      }
      if constexpr (fp8) {
        matrix::Tiles<4> even;
        matrix::Tiles<4> odd;
        TH_UNROLL
        for (int i = 0; i < 4; ++i) {
          const u32 sorted = bits::permute(words.word[i], 0, 0x3120);
          even.word[i] = lower_halves(sorted);
          odd.word[i] = upper_halves(sorted);
        }
        TH_UNROLL
        for (int group = 0; group < groups; ++group) {
          matrix::multiply<Multiplied>(sums.output[step][group], even, weights[group]);
          matrix::multiply<Multiplied>(sums.output[step + 1][group], odd, weights[group]);
        }
      } else {
        TH_UNROLL
        for (int group = 0; group < groups; ++group) {
          matrix::multiply<Multiplied>(sums.output[step][group], words, weights[group]);
        }
      }
    }
  }

  // ---- merging

  TH_DEVICE void settle(Sums& sums, const StreamKMemory<config>& memory, u32 warp) const {
    const u32 lane = warp::lane();
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const float sum = over_keys(sums.sum[group][side], [](float a, float b) { return a + b; });
        if (lane / 4 == 0) {
          memory.sums(warp, static_cast<u32>(group) * 8 + lane * 2 + static_cast<u32>(side))
              .store(0, {sums.shift[group][side], sum});
        }
      }
    }
  }

  /// The value's column of this thread's first two sums of a step; of the others, `apart` further on.
  TH_DEVICE static u32 column(int step) {
    const u32 own = warp::lane() / 4;
    return fp8 ? static_cast<u32>(step / 2) * 32 + own * 2 + static_cast<u32>(step % 2)
               : static_cast<u32>(step) * 16 + own;
  }
  static constexpr u32 apart = fp8 ? 16 : 8;

  TH_DEVICE void spread(const Sums& sums, const StreamKMemory<config>& memory, u32 warp, u32 first_row) const {
    TH_UNROLL
    for (int group = 0; group < groups; ++group) {
      if (static_cast<u32>(group) * 8 == first_row) {
        TH_UNROLL
        for (int step = 0; step < value_steps; ++step) {
          TH_UNROLL
          for (int i = 0; i < 4; ++i) {
            memory.merged(warp, warp::lane() % 4 * 2 + static_cast<u32>(i % 2))
                .store(column(step) + static_cast<u32>(i / 2) * apart, sums.output[step][group][i]);
          }
        }
      }
    }
  }

  /// What the block's warps have of a row of a head.
  TH_DEVICE static RowSums<owned> of_warps(const StreamKMemory<config>& memory, u32 head, u32 row) {
    const u32 first_warp = head * head_warps;
    return merged_parts<owned, head_warps>(
        head_warps, [&](u32 warp) { return memory.sums(first_warp + warp, row).load(); },
        [&](u32 warp) {
          return memory.merged(first_warp + warp, row % StreamKConfig::merged_rows).offset(warp::lane() * owned);
        });
  }

  TH_DEVICE void send(const StreamKMemory<config>& memory, const PartPlace& to, u32 head, u32 row) const {
    send_part(to, of_warps(memory, head, row));
  }
  TH_DEVICE void merge(const Item& item, const StreamKMemory<config>& memory, u32 parts, u32 place, u32 head,
                       u32 row) const {
    RowSums<owned> sums = of_cluster(memory, parts, place);
    finish_row<config, Element, KeyElement, logits, QueryElement>(params, item.tile.of_head(head), row, sums);
  }

  TH_DEVICE void combine(const Item& item, const StreamKMemory<config>& memory, const ItemShare& share, u32 head,
                         u32 row) const {
    const u32 lane = warp::lane();
    RowSums<owned> sums = of_warps(memory, head, row);
    if (share.is_whole) {
      finish_row<config, Element, KeyElement, logits, QueryElement>(params, item.tile.of_head(head), row, sums);
      return;
    }
    const i64 at = static_cast<i64>(share.place) * config.tile_rows() + head * config.rows + row;
    const Global<float> to = Global<float>{params.parts}.offset(at * config.value_dim + lane * owned);
    constexpr int wide = owned < 4 ? owned : 4;
    TH_UNROLL
    for (int i = 0; i < owned; i += wide) {
      to.offset(i).template as<Vector<float, wide>>().store(0, piece_of<wide>(sums.output, i));
    }
    if (lane == 0) {
      Global<Vector<float, 2>>{params.parts_sums}.store(at, {sums.shift, sums.sum});
    }
  }

  TH_DEVICE void announce(const Item& item, u32 parts) const {
    const u32 block = launch::block_index().x;
    if (block == 0) {
      Global<u32>{params.header}.store(0, launch::block_count().x);
    }
    const QueryTile& tile = item.tile;
    const Global<Vector<i32, 4>> to{params.left};
    to.store(block * 2, {static_cast<i32>(parts), tile.batch, tile.kv_head, tile.first_query});
    to.store(block * 2 + 1, {tile.queries, tile.keys, tile.first_row, static_cast<i32>(tile.rows)});
  }
};

template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement = Element>
TH_KERNEL(config.threads(), 1)
stream_k(TH_GRID_CONSTANT const StreamKParams params) {
  pipeline::attention::stream_k<config>(StreamKAttention<config, Element, KeyElement, logits, QueryElement>{params});
}

/// Warps of a block of the second launch, which takes a row at a time.
inline constexpr int merging_warps = 4;

/// Row `tile_row` of what `block` left, the rows of its heads one after the other, from its parts in the order of their
/// blocks.
template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement>
TH_DEVICE void merge_row(const StreamKParams& params, u32 block, u32 tile_row) {
  constexpr int owned = config.value_dim / 32;
  // More would take registers that the blocks of the first launch leave to those which wait beside them.
  constexpr u32 at_once = owned > 4 ? 4 : config.key_bytes == 1 ? 8 : 16;
  const u32 lane = warp::lane();
  const u32 row = tile_row % config.rows;
  const u32 blocks = Global<u32>{params.header}.load();
  const Global<Vector<i32, 4>> from{params.left};
  const Vector<i32, 4> head = from.load(block * 2);
  const Vector<i32, 4> rest = from.load(block * 2 + 1);
  const QueryTile first_tile{
      head.at[1], head.at[2], head.at[3], rest.at[0], rest.at[1], rest.at[2], static_cast<u32>(rest.at[3])};
  const QueryTile tile = first_tile.of_head(tile_row / config.rows);
  const u32 parts = block < blocks ? static_cast<u32>(head.at[0]) : 0;
  if (parts == 0 || row >= tile.rows) {
    return;
  }
  const auto place = [&](u32 part) {
    return (2 * static_cast<i64>(block + part) + (part == 0 ? 1 : 0)) * config.tile_rows() + tile_row;
  };
  const auto sums_of = [&](u32 part) {
    return part < parts ? Global<Vector<float, 2>>{params.parts_sums}.load(place(part))
                        : Vector<float, 2>{{-largest_float, 0.0F}};
  };
  float pieces[at_once][owned];
  const auto load_parts = [&](u32 first) {
    TH_UNROLL
    for (u32 i = 0; i < at_once; ++i) {
      if (first + i < parts) {
        load_floats(pieces[i], Global<float>{params.parts}.offset(place(first + i) * config.value_dim + lane * owned));
      }
    }
  };
  Vector<float, 2> own = sums_of(lane);
  load_parts(0);
  RowSums<owned> sums{};
  sums.shift = own.at[0];
  TH_NO_UNROLL
  for (u32 part = 32 + lane; part < parts; part += 32) {
    sums.shift = math::max(sums.shift, sums_of(part).at[0]);
  }
  sums.shift = warp::reduce(sums.shift, [](float a, float b) { return math::max(a, b); });
  TH_NO_UNROLL
  for (u32 round = 0; round < parts; round += 32) {
    own = round == 0 ? own : sums_of(round + lane);
    const float factor = math::exp2_approx(own.at[0] - sums.shift);
    sums.sum += warp::reduce(own.at[1] * factor, [](float a, float b) { return a + b; });
    TH_NO_UNROLL
    for (u32 first = round; first < parts && first < round + 32; first += at_once) {
      if (first > 0) {
        load_parts(first);
      }
      TH_UNROLL
      for (u32 i = 0; i < at_once; ++i) {
        const float weight = warp::shuffle(factor, first + i - round);
        TH_UNROLL
        for (int j = 0; j < owned; ++j) {
          sums.output[j] = first + i < parts ? math::fma(weight, pieces[i][j], sums.output[j]) : sums.output[j];
        }
      }
    }
  }
  finish_row<config, Element, KeyElement, logits, QueryElement>(params, tile, row, sums);
}

/// Every row that was left in parts. Grid: any number of blocks of merging_warps warps.
template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement = Element>
TH_KERNEL(merging_warps * 32, 1)
merge_parts(TH_GRID_CONSTANT const StreamKParams params) {
  const u32 first = launch::block_index().x * merging_warps + warp::index();
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const u32 rows = static_cast<u32>(params.max_blocks * config.tile_rows());
  TH_NO_UNROLL
  for (u32 index = first; index < rows; index += launch::block_count().x * merging_warps) {
    merge_row<config, Element, KeyElement, logits, QueryElement>(params, index / config.tile_rows(),
                                                                 index % config.tile_rows());
  }
}

}  // namespace thresher::strategies::attention
