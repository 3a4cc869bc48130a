#pragma once
/// `pipelined`: the strategy for long sequences. Queries and weights are A operands in registers. All warpgroups of a
/// cluster share keys and values.
#include "pipeline/attention/stream.hpp"
#include "strategies/attention/device/output.hpp"
#include "strategies/attention/device/transposed_tile.hpp"

namespace thresher::strategies::attention {

using pipeline::attention::Blocks;
using pipeline::attention::Slot;
using pipeline::attention::StreamConfig;
using pipeline::attention::WarpgroupBlocks;

template <typename Element, Logits logits>
struct StreamedAttention {
  using Engine = machine::EngineOf<machine::Arch::sm_90a>;
  template <StreamConfig config>
  using KeyElement = conditional<config.has_codes(), E4M3, Element>;
  template <StreamConfig config>
  using QueryElement = conditional<config.multiplies_codes, E4M3, Element>;
  /// The type in which weights and values are multiplied: FP8 fits in halves, which have more bits for weights than
  /// bfloat16.
  template <StreamConfig config>
  using Weighed = conditional<config.multiplies_codes, E4M3, conditional<config.widens(), Half, Element>>;
  const Params& params;

  struct StreamedWork {
    Sequence sequence;
    i32 first_row;  ///< of this block's tile
    Blocks blocks;  ///< seen by any row of the cluster
  };

  template <StreamConfig config>
  struct Tile {
    Engine::Fragment queries[config.queries_in_registers ? config.steps(config.head_dim) : 1];
    Shared<u8> query_tile;  ///< the warpgroup's rows of it
    Accumulators<config.keys> scores;
    Weights<Weighed<config>, config.keys> weights;
    Accumulators<config.value_dim> output;
    /// With FP8: a block's product with some columns of its values, before it is added to the output.
    Accumulators<config.multiplies_codes ? config.product_columns() : 8> product;
    RowPair rows;
    float dot_factor;         ///< with FP8: the factor of dot products
    float product_factor[2];  ///< with FP8, scores ahead: RowPair::factor of the block whose product is in flight
    bool started = false;     ///< output holds something to add to
    bool masked = false;      ///< some row did not see all keys of one of its blocks
    i32 keys = 0;             ///< of the sequence
    i32 diagonal = 0;         ///< the key under the diagonal for this thread's first row
    i32 whole_begin = 0;      ///< blocks that all of the warpgroup's rows see whole
    i32 whole_end = 0;
  };

  TH_DEVICE static i32 clusters() { return static_cast<i32>(launch::block_count().x / cluster::size()); }
  TH_DEVICE Pieces pieces() const { return pieces_of(params, clusters()); }

  /// In pages by all lanes of a warp together.
  template <StreamConfig config>
  TH_DEVICE i32 work_count() const {
    if constexpr (config.paged) {
      return params.heads * tiles_in_pages(params, config.rows());
    } else {
      return pieces().count();
    }
  }

  TH_DEVICE i32 work_index(i32 turn) const {
    return piece_at(params, pieces(), clusters(), static_cast<i32>(launch::block_index().x / cluster::size()), turn);
  }

  /// The blocks that the rows [first, end) of the sequence see.
  template <int block_keys>
  TH_DEVICE Blocks blocks_of(const Sequence& sequence, i32 first, i32 end) const {
    if (first >= sequence.queries || end <= 0) {
      return {0, 0};
    }
    const Visible low = visible_keys(params, sequence, most(first, 0));
    const Visible high = visible_keys(params, sequence, least(end, sequence.queries) - 1);
    if (low.begin >= high.end) {
      return {0, 0};
    }
    return {low.begin / block_keys, (high.end + block_keys - 1) / block_keys};
  }

  template <StreamConfig config>
  TH_DEVICE StreamedWork work(i32 index) const {
    constexpr i32 cluster_rows = config.rows() * config.multicast;
    const Work work = [&] {
      if constexpr (config.paged) {
        const HeadTile at = head_tile(params, pieces(), index);
        return tile_in_pages(params, at.head, at.tile, cluster_rows);
      } else {
        return work_at(params, pieces(), index, cluster_rows);
      }
    }();
    const i32 rank = config.multicast == 1 ? 0 : static_cast<i32>(cluster::rank());
    return {work.sequence, work.first_row + rank * config.rows(),
            blocks_of<config.keys>(work.sequence, work.first_row, work.first_row + cluster_rows)};
  }

  TH_DEVICE void copy_queries(const Slot& slot, const StreamedWork& work) const {
    slot.copy(0, params.query_map,
              map_place(params, work.sequence, work.sequence.first_query + work.first_row, 0, work.sequence.head));
  }
  TH_DEVICE void copy_keys(const Slot& slot, u32 offset, const StreamedWork& work, i32 key, i32 panel) const {
    slot.copy(offset, params.key_map, key_place(work.sequence, key, panel));
  }
  TH_DEVICE void copy_values(const Slot& slot, u32 offset, const StreamedWork& work, i32 key, i32 panel) const {
    slot.copy(offset, params.value_map, key_place(work.sequence, key, panel));
  }
  TH_DEVICE At<5> key_place(const Sequence& sequence, i32 key, i32 panel) const {
    return map_place(params, sequence, sequence.first_key + key, panel, sequence.kv_head);
  }

  // ---- paged KV cache

  /// The lane's box of a block: the page as the table names it, and the row. With FP8 and three warpgroups it is a page
  /// that exists, and `flags` tell of others: to find that out later takes registers that are not there.
  struct Pages {
    i32 kv_head;
    i32 named;
    i32 row;
    u32 flags;
  };

  TH_DEVICE static i32 key_count(const StreamedWork& work) { return work.sequence.keys; }

  /// Past the sequence's keys, its last box again.
  template <StreamConfig config>
  TH_DEVICE Pages pages(const StreamedWork& work, i32 block) const {
    const u32 shift = params.paging.box_shift;
    const i32 last = most(work.sequence.keys - 1, 0) >> shift;
    const i32 box = least((block * config.keys >> shift) + static_cast<i32>(warp::lane()), last);
    const i32 place = quotient(box << shift, params.paging.page);
    const Pages found{work.sequence.kv_head, table_entry(params.paging, work.sequence.batch, place),
                      (box << shift) - place * static_cast<i32>(params.paging.page.value), 0};
    return config.has_codes() && config.math_warpgroups == 3 ? existing(found) : found;
  }
  TH_DEVICE Pages existing(const Pages& pages) const {
    const i32 page = existing_page(params.paging, pages.named);
    return {pages.kv_head, page, pages.row, page == pages.named ? pages.flags : pages_clamped};
  }
  TH_DEVICE u32 flags_of(const Pages& pages) const { return existing(pages).flags; }

  /// A tile of so many columns in pages is copied box by box. A box has all panels of its rows, or is copied panel by
  /// panel. Warps that share an operand take boxes in turn.
  template <StreamConfig config, int columns>
  struct PageTile {
    static constexpr int row_bytes = columns * config.stored_bytes();
    static constexpr u32 panel_bytes = static_cast<u32>(pipeline::attention::panel_bytes_of(row_bytes));
    static constexpr u32 panels = static_cast<u32>(pipeline::attention::panels_of(row_bytes));
    static constexpr u32 panels_at_once = config.copies_whole_rows() ? panels : 1;
    static constexpr u32 warps = static_cast<u32>(config.sharing_warps());
  };

  /// The place of a panel of the box in a map: of whole rows where pages lie in one grid of groups of 8 rows.
  template <StreamConfig config>
  TH_DEVICE At<5> box_place(const Pages& pages, u32 panel) const {
    const i32 page = existing_page(params.paging, pages.named);
    if constexpr (config.copies_whole_rows()) {
      if (params.paging.page_groups != 0) {
        const i32 group = page * params.paging.page_groups + pages.row / pipeline::attention::group_rows;
        return {0, 0, 0, group, pages.kv_head};
      }
    }
    return {0, pages.row, static_cast<i32>(panel), pages.kv_head, page};
  }

  /// The bytes that warp `own` of those that share an operand copies of a tile of so many columns.
  template <StreamConfig config, int columns>
  TH_DEVICE u32 own_bytes(u32 own) const {
    using Copied = PageTile<config, columns>;
    const u32 shift = params.paging.box_shift;
    const u32 boxes = static_cast<u32>(config.keys) >> shift;
    return (boxes + Copied::warps - 1 - own) / Copied::warps * (static_cast<u32>(Copied::row_bytes) << shift);
  }

  template <StreamConfig config, int columns>
  TH_DEVICE void copy_boxes(const Slot& slot, const TensorMap& map, const Pages& pages, u32 own) const {
    using Copied = PageTile<config, columns>;
    const u32 lane = warp::lane();
    const u32 shift = params.paging.box_shift;
    if (lane < static_cast<u32>(config.keys) >> shift && lane % Copied::warps == own) {
      TH_UNROLL
      for (u32 panel = 0; panel < Copied::panels; panel += Copied::panels_at_once) {
        const u32 row_of_tile = (lane << shift) * Copied::panels_at_once;
        const u32 offset = (panel * static_cast<u32>(config.keys) + row_of_tile) * Copied::panel_bytes;
        slot.copy(offset, map, box_place<config>(pages, panel));
      }
    }
    warp::sync();
  }
  template <StreamConfig config>
  TH_DEVICE void copy_key_pages(const Slot& slot, const Pages& pages, u32 own) const {
    copy_boxes<config, config.head_dim>(slot, params.key_map, pages, own);
  }
  template <StreamConfig config>
  TH_DEVICE void copy_value_pages(const Slot& slot, const Pages& pages, u32 own) const {
    copy_boxes<config, config.value_dim>(slot, params.value_map, pages, own);
  }

  // ---- keys and values in FP8

  template <StreamConfig config>
  TH_DEVICE void widen_keys(Shared<u8> codes, Shared<u8> keys, u32 own) const {
    widen<false, WidenedTile<Element, config.keys, config.head_dim>>({codes, keys}, own, config.keys);
  }
  /// The first `there` rows exist. The warp with the most keys has the fewest values.
  template <StreamConfig config>
  TH_DEVICE void prepare_values(Shared<u8> codes, Shared<u8> values, u32 own, i32 there) const {
    if constexpr (config.multiplies_codes) {
      const TransposedTile<config.keys, config.value_dim> tile{codes, values};
      tile.transpose(own, StreamConfig::widening_warps, there);
    } else {
      widen<true, WidenedTile<Weighed<config>, config.keys, config.value_dim>>(
          {codes, values}, StreamConfig::widening_warps - 1 - own, there);
    }
  }
  template <bool cleans, typename Tile>
  TH_DEVICE static void widen(const Tile& tile, u32 first, i32 there) {
    TH_NO_UNROLL
    for (u32 group = first; group < Tile::groups; group += StreamConfig::widening_warps) {
      tile.template widen<cleans>(group, there);
    }
  }

  /// All lanes of the producer warp call it. The first block reports the lengths of all sequences, also of those
  /// without queries or of another launch.
  TH_DEVICE void report(u32 flags) const {
    const u32 block = launch::block_index().x;
    const u32 own = block == 0 ? flags | wrong_lengths(params) : flags;
    const u32 all = warp::reduce(own, [](u32 a, u32 b) { return a | b; });
    if (warp::lane() == 0) {
      const Global<u32> status{params.paging.status};
      if (block == 0) {
        status.store(0, launch::block_count().x);
      }
      status.store(1 + block, all);
    }
  }

  /// finish() computes work and rows again: kept, they would take registers from the main loop.
  template <StreamConfig config>
  TH_DEVICE WarpgroupBlocks begin(i32 index, Tile<config>& tile, i32 warpgroup) const {
    const StreamedWork work = this->template work<config>(index);
    const Sequence& sequence = work.sequence;
    const i32 first = work.first_row + warpgroup * StreamConfig::rows_per_warpgroup;
    const i32 end = least(first + StreamConfig::rows_per_warpgroup, sequence.queries);
    tile.keys = sequence.keys;
    tile.diagonal = first + fragment_row() + sequence.keys - sequence.queries;
    tile.whole_begin = (visible_keys(params, sequence, end - 1).begin + config.keys - 1) / config.keys;
    tile.whole_end = visible_keys(params, sequence, most(first, 0)).end / config.keys;
    tile.started = config.clears_sums();
    if (tile.started) {  // zeros selected at the end would double the registers
      clear(tile);
    }
    tile.masked = false;
    if constexpr (config.has_codes()) {
      tile.dot_factor = dot_factor<QueryElement<config>>(sequence);
    }
    start_rows(tile.rows);
    const Blocks own = blocks_of<config.keys>(sequence, first, end);
    if (own.begin >= own.end) {
      return {work.blocks.end - work.blocks.begin, {0, 0}, 0};
    }
    return {own.begin - work.blocks.begin, own, work.blocks.end - own.end};
  }

  /// With direct logits it is positive and finite: 0 times a masked score would be NaN, and the row computed again.
  template <typename Query>
  TH_DEVICE float dot_factor(const Sequence& sequence) const {
    constexpr float smallest_float = 1.17549435e-38F;
    const float descale = dot_descale<Query, E4M3>(params, sequence.batch, sequence.kv_head);
    return logits == Logits::general ? descale
                                     : math::max(math::min(descale * params.scale_log2, largest_float), smallest_float);
  }

  template <StreamConfig config>
  TH_DEVICE void take_queries(Tile<config>& tile, Shared<u8> queries, u32 warpgroup) const {
    constexpr int row_bytes = pipeline::attention::panel_bytes_of(config.head_dim * config.element_bytes());
    const u32 first_row = warpgroup * StreamConfig::rows_per_warpgroup;
    if constexpr (config.queries_in_registers) {
      TH_UNROLL
      for (int step = 0; step < config.steps(config.head_dim); ++step) {
        tile.queries[step] = pipeline::attention::load_fragment<Engine, row_bytes>(
            queries, config.rows(), first_row + warp::index() % 4 * 16, step);
      }
    } else {
      tile.query_tile = queries.offset_bytes(first_row * static_cast<u32>(row_bytes));
    }
  }

  template <StreamConfig config>
  TH_DEVICE void score(Tile<config>& tile, Shared<u8> keys) const {
    using pipeline::attention::along_columns;
    using pipeline::attention::by_panels;
    constexpr int row_bytes = pipeline::attention::panel_bytes_of(config.head_dim * config.element_bytes());
    if constexpr (config.queries_in_registers) {
      TH_UNROLL
      for (int step = 0; step < config.steps(config.head_dim); ++step) {
        Engine::settle(tile.queries[step]);
      }
    }
    Engine::settle(tile.scores);
    Engine::fence();
    TH_UNROLL
    for (int step = 0; step < config.steps(config.head_dim); ++step) {
      const auto key_step =
          along_columns<Engine, row_bytes>(keys, config.layout(config.head_dim), step, config.base_descriptors);
      if constexpr (config.queries_in_registers) {
        Engine::multiply<QueryElement<config>>(tile.scores, tile.queries[step], key_step, step != 0);
      } else {
        Engine::multiply<QueryElement<config>>(
            tile.scores,
            along_columns<Engine, row_bytes>(tile.query_tile, by_panels(config.rows(), row_bytes), step,
                                             config.base_descriptors),
            key_step, step != 0);
      }
    }
  }

  /// Scores become logits of the keys that their rows see.
  template <StreamConfig config>
  TH_DEVICE void mask_scores(Tile<config>& tile, i32 block) const {
    if constexpr (logits == Logits::general) {
      to_exponents(params, tile.scores, config.has_codes() ? tile.dot_factor : 1.0F);
    }
    if (block < tile.whole_begin || block >= tile.whole_end) {
      tile.masked = true;
      TH_UNROLL
      for (int half = 0; half < 2; ++half) {
        mask(visible_from(params, tile.diagonal + half * 8, tile.keys), half, tile.scores, block * config.keys);
      }
    }
  }
  template <StreamConfig config>
  TH_DEVICE float logit_factor(const Tile<config>& tile) const {
    return logits == Logits::general ? 1.0F : config.has_codes() ? tile.dot_factor : params.scale_log2;
  }
  template <StreamConfig config>
  TH_DEVICE static WeightRange weight_range() {
    return config.multiplies_codes ? weights_as_codes : weights_in_16_bits;
  }

  template <StreamConfig config>
  TH_DEVICE void softmax(Tile<config>& tile, i32 block) const {
    mask_scores(tile, block);
    update_softmax(tile.rows, tile.scores, logit_factor(tile), weight_range<config>());
  }
  /// The same in two steps.
  template <StreamConfig config>
  TH_DEVICE void find_maximum(Tile<config>& tile, i32 block) const {
    mask_scores(tile, block);
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      update_maximum(tile.rows, tile.scores, half, logit_factor(tile), weight_range<config>());
    }
  }
  template <StreamConfig config>
  TH_DEVICE void weigh(Tile<config>& tile) const {
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      update_sum(tile.rows, tile.scores, half, logit_factor(tile));
    }
  }

  /// The sum in this thread's rows, which the softmax of a block completes.
  template <StreamConfig config>
  TH_DEVICE float sum_of_weights(const Tile<config>& tile) const {
    return tile.rows.running_sum[0] + tile.rows.running_sum[1];
  }

  /// The factors of this thread's rows, which the maximum of a block gives.
  template <StreamConfig config>
  TH_DEVICE float sum_of_factors(const Tile<config>& tile) const {
    return tile.rows.factor[0] + tile.rows.factor[1];
  }

  template <StreamConfig config>
  TH_DEVICE void take_weights(Tile<config>& tile) const {
    pack_weights(tile.weights, tile.scores);
    if constexpr (config.scores_ahead) {
      tile.product_factor[0] = tile.rows.factor[0];
      tile.product_factor[1] = tile.rows.factor[1];
    }
  }

  /// Product `index` of a block's weights with its values.
  template <StreamConfig config>
  TH_DEVICE void accumulate(Tile<config>& tile, Shared<u8> values, int index) const {
    TH_UNROLL
    for (int step = 0; step < config.steps(config.keys); ++step) {
      Engine::settle(tile.weights.step[step]);
    }
    if constexpr (config.multiplies_codes) {
      multiply_codes(tile, values.offset_bytes(static_cast<u32>(index * config.product_columns()) *
                                               pipeline::attention::panel_row_bytes));
    } else {
      Engine::settle(tile.output);
      Engine::fence();
      TH_UNROLL
      for (int step = 0; step < config.steps(config.keys); ++step) {
        Engine::multiply_columns<Weighed<config>>(
            tile.output, tile.weights.step[step],
            pipeline::attention::along_rows<Engine>(values, config.layout(config.value_dim), step,
                                                    config.base_descriptors),
            tile.started || step != 0);
      }
    }
    tile.started = true;
  }

  /// `values` begin with the product's first column.
  template <StreamConfig config>
  TH_DEVICE static void multiply_codes(Tile<config>& tile, Shared<u8> values) {
    Engine::settle(tile.product);
    Engine::fence();
    TH_UNROLL
    for (int step = 0; step < config.steps(config.keys); ++step) {
      Engine::multiply<E4M3>(
          tile.product, tile.weights.step[step],
          pipeline::attention::along_columns<Engine>(values, pipeline::attention::by_panels(config.value_dim), step,
                                                     config.base_descriptors),
          step != 0);
    }
  }

  template <StreamConfig config>
  TH_DEVICE void settle_product(Tile<config>& tile, int index) const {
    if constexpr (!config.multiplies_codes) {
      Engine::settle(tile.output);
    } else {
      Engine::settle(tile.product);
      const float(&factor)[2] = config.scores_ahead ? tile.product_factor : tile.rows.factor;
      TH_UNROLL
      for (int i = 0; i < config.product_columns() / 2; ++i) {
        const int at = index * (config.product_columns() / 2) + i;
        tile.output.set(at, math::fma(tile.output.get(at), factor[i / 2 % 2], tile.product.get(i)));
      }
    }
  }

  template <StreamConfig config>
  TH_DEVICE void rescale(Tile<config>& tile) const {
    if (warp::any(tile.rows.factor[0] != 1.0F || tile.rows.factor[1] != 1.0F)) {
      scale_rows(tile.output, tile.rows.factor[0], tile.rows.factor[1]);
    }
  }

  template <StreamConfig config>
  TH_DEVICE static void clear(Tile<config>& tile) {
    TH_UNROLL
    for (int i = 0; i < config.value_dim / 2; ++i) {
      tile.output.set(i, 0.0F);
    }
  }

  template <StreamConfig config>
  TH_DEVICE void finish(i32 index, Tile<config>& tile, i32 warpgroup) const {
    // A shuffle, so that the compiler computes the work again instead of keeping it through the main loop.
    const StreamedWork work = this->template work<config>(warp::shuffle(index, 0));
    i32 row[2];
    RowEnd row_end[2];
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      const i32 query = work.first_row + warpgroup * StreamConfig::rows_per_warpgroup + fragment_row() + half * 8;
      const bool stored = query < work.sequence.queries;
      const Visible visible = visible_keys(params, work.sequence, query);
      row[half] = stored ? query : -1;
      row_end[half] = end_row(params, work.sequence.head, tile.rows.running_max[half],
                              quad_sum(tile.rows.running_sum[half]), visible.begin < visible.end);
    }
    if constexpr (config.has_codes()) {
      const float factor = descale_of(params.value_descale, work.sequence.batch, work.sequence.kv_head);
      row_end[0].factor *= factor;
      row_end[1].factor *= factor;
    }
    if (!tile.started) {
      clear(tile);
    } else {
      scale_rows(tile.output, row_end[0].factor, row_end[1].factor);
    }
    const SpoiltLanes spoilt = tile.masked ? find_spoilt_rows(row, tile.output) : SpoiltLanes{};
    store_rows<Element>(params, work.sequence, row, 0, tile.output);
    store_lse(params, work.sequence, row, row_end);
    recompute_rows<Element, QueryElement<config>, KeyElement<config>, config.head_dim, config.value_dim>(
        params, work.sequence, row, spoilt, 0, config.value_dim);
  }
};

template <StreamConfig config, typename Element, Logits logits>
TH_KERNEL(config.threads(), 1)
pipelined(TH_GRID_CONSTANT const Params params) {
  pipeline::attention::stream<config>(StreamedAttention<Element, logits>{params});
}

}  // namespace thresher::strategies::attention
