#pragma once
/// `split`: for problems too small to fill the machine. Up to 256 keys a block, a cluster for all keys.
#include "pipeline/attention/split.hpp"
#include "strategies/attention/device/output.hpp"

namespace thresher::strategies::attention {

using pipeline::attention::Message;
using pipeline::attention::Slot;
using pipeline::attention::SplitConfig;

template <typename Element, Logits logits>
struct SplitAttention {
  using Engine = machine::EngineOf<machine::Arch::sm_90a>;
  const Params& params;

  struct SplitWork {
    Sequence sequence;
    i32 first_row;
    i32 first_key;  ///< this block's keys are [first_key, end_key)
    i32 end_key;
    i32 chunks;       ///< 0: none of them is seen by any row
    i32 whole_begin;  ///< its keys that all rows see
    i32 whole_end;
    i32 rank;
  };

  template <SplitConfig config>
  struct Tile {
    Accumulators<SplitConfig::chunk> scores[SplitConfig::chunks];
    Weights<Element, SplitConfig::chunk> weights[SplitConfig::chunks];
    Accumulators<config.head_dim> output;
    Accumulators<config.merged_columns()> merged;
    RowPair rows;
    float largest[2];
    float merged_max[2];
    float merged_sum[2];
    bool masked;
    bool started;
  };

  /// Keys are divided evenly in units of 16, which keeps every share within 256 where all fit cluster·256.
  template <SplitConfig config>
  TH_DEVICE SplitWork work(i32 rank) const {
    const i32 batch = static_cast<i32>(launch::block_index().z);
    const i32 head = static_cast<i32>(launch::block_index().x) / config.cluster;
    const i32 tile = static_cast<i32>(launch::block_index().y);
    if constexpr (config.whole) {
      constexpr i32 keys = SplitConfig::chunks * SplitConfig::chunk;
      const Sequence all{
          batch, head, params.group == 1 ? head : head / params.group, 0, params.queries, 0, config.cluster * keys};
      return {all, tile * SplitConfig::rows, rank * keys, (rank + 1) * keys, SplitConfig::chunks, 0, all.keys, rank};
    }
    const Work work = tile_at(params, batch, head, tile, SplitConfig::rows);
    const i32 share = (work.sequence.keys + config.cluster * 16 - 1) / (config.cluster * 16) * 16;
    SplitWork split{};
    split.sequence = work.sequence;
    split.first_row = work.first_row;
    split.first_key = least(rank * share, work.sequence.keys);
    split.end_key = least((rank + 1) * share, work.sequence.keys);
    split.rank = rank;
    if (work.first_row < work.sequence.queries) {
      const i32 last = least(work.first_row + SplitConfig::rows, work.sequence.queries) - 1;
      const Visible low = visible_keys(params, work.sequence, work.first_row);
      const Visible high = visible_keys(params, work.sequence, last);
      const i32 begin = most(split.first_key, low.begin);
      const i32 end = least(split.end_key, high.end);
      split.whole_begin = high.begin;
      split.whole_end = least(split.end_key, low.end);
      split.chunks = begin < end ? (end - split.first_key + SplitConfig::chunk - 1) / SplitConfig::chunk : 0;
    }
    return split;
  }

  TH_DEVICE void copy_queries(const Slot& slot, const SplitWork& work) const {
    slot.copy(0, params.query_map,
              map_place(params, work.sequence, work.sequence.first_query + work.first_row, 0, work.sequence.head));
  }
  TH_DEVICE void copy_keys(const Slot& slot, const SplitWork& work, int chunk) const {
    slot.copy(0, params.key_map, chunk_place(work, chunk));
  }
  TH_DEVICE void copy_values(const Slot& slot, const SplitWork& work, int chunk) const {
    slot.copy(0, params.value_map, chunk_place(work, chunk));
  }

  template <SplitConfig config>
  TH_DEVICE void begin(const SplitWork&, Tile<config>& tile) const {
    start_rows(tile.rows);
    tile.largest[0] = minus_infinity();
    tile.largest[1] = minus_infinity();
    tile.masked = false;
    tile.started = false;
  }

  template <SplitConfig config>
  TH_DEVICE void score(Tile<config>& tile, Shared<u8> queries, Shared<u8> keys, int chunk) const {
    using pipeline::attention::along_columns;
    using pipeline::attention::by_panels;
    Engine::settle(tile.scores[chunk]);
    Engine::fence();
    TH_UNROLL
    for (int step = 0; step < config.head_dim / 16; ++step) {
      Engine::multiply<Element>(tile.scores[chunk], along_columns<Engine>(queries, by_panels(SplitConfig::rows), step),
                                along_columns<Engine>(keys, by_panels(SplitConfig::chunk), step), step != 0);
    }
  }

  /// Masks a chunk's finished scores and finds the rows' largest.
  template <SplitConfig config>
  TH_DEVICE void inspect(const SplitWork& work, Tile<config>& tile, int chunk) const {
    Engine::settle(tile.scores[chunk]);
    if constexpr (logits == Logits::general) {
      to_exponents(params, tile.scores[chunk]);
    }
    const i32 first_key = work.first_key + chunk * SplitConfig::chunk;
    if (!config.whole && (first_key < work.whole_begin || first_key + SplitConfig::chunk > work.whole_end)) {
      tile.masked = true;
      TH_UNROLL
      for (int half = 0; half < 2; ++half) {
        Visible visible = visible_keys(params, work.sequence, work.first_row + fragment_row() + half * 8);
        visible.end = least(visible.end, work.end_key);
        visible.begin = least(visible.begin, visible.end);
        mask(visible, half, tile.scores[chunk], first_key);
      }
    }
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      tile.largest[half] = math::max(tile.largest[half], row_max(tile.scores[chunk], half));
    }
  }

  /// Follows the inspection of all chunks: the largest exponent of a row among this block's keys is known.
  template <SplitConfig config>
  TH_DEVICE void set_running_max(Tile<config>& tile) const {
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      tile.rows.running_max[half] = finite(quad_max(tile.largest[half]) * factor());
    }
  }

  template <SplitConfig config>
  TH_DEVICE void softmax(Tile<config>& tile, int chunk, int part) const {
    constexpr int count = SplitConfig::chunk / 8 / config.parts;
    const Groups groups{part * count, (part + 1) * count};
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      tile.rows.running_sum[half] +=
          attention::exponentiate(tile.scores[chunk], groups, half, factor(), tile.rows.running_max[half]);
    }
    pack_weights(tile.weights[chunk], tile.scores[chunk], groups);
  }

  template <SplitConfig config>
  TH_DEVICE void accumulate(Tile<config>& tile, Shared<u8> values, int chunk, int part) const {
    constexpr int count = SplitConfig::chunk / 16 / config.parts;
    using pipeline::attention::along_rows;
    using pipeline::attention::by_panels;
    TH_UNROLL
    for (int step = part * count; step < (part + 1) * count; ++step) {
      Engine::settle(tile.weights[chunk].step[step]);
    }
    if (chunk == 0 && part == 0) {
      Engine::settle(tile.output);
    }
    Engine::fence();
    TH_UNROLL
    for (int step = part * count; step < (part + 1) * count; ++step) {
      Engine::multiply_columns<Element>(tile.output, tile.weights[chunk].step[step],
                                        along_rows<Engine>(values, by_panels(SplitConfig::chunk), step),
                                        chunk != 0 || step != 0);
    }
    tile.started = true;
  }

  /// Makes the partial result final: the sums cover whole rows, and a block without keys has zeros.
  template <SplitConfig config>
  TH_DEVICE void finalize(Tile<config>& tile) const {
    Engine::settle(tile.output);
    if (!config.whole && !tile.started) {
      TH_UNROLL
      for (int i = 0; i < config.head_dim / 2; ++i) {
        tile.output.set(i, 0.0F);
      }
    }
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      tile.rows.running_sum[half] = quad_sum(tile.rows.running_sum[half]);
    }
  }

  /// The messages to block `peer`: its columns, then the rows' maxima and sums.
  template <SplitConfig config>
  TH_DEVICE Message message(const Tile<config>& tile, int peer, int index) const {
    if (index == config.messages() - 1) {
      return {{tile.rows.running_max[0], tile.rows.running_max[1], tile.rows.running_sum[0], tile.rows.running_sum[1]}};
    }
    const int first = (peer * config.merged_columns() / 8 + index * config.groups_per_message()) * 4;
    if constexpr (config.narrow_exchange) {
      float part[2];
      TH_UNROLL
      for (int half = 0; half < 2; ++half) {
        part[half] = tile.rows.running_sum[half] == 0.0F ? 0.0F : math::reciprocal_approx(tile.rows.running_sum[half]);
      }
      Message message;
      TH_UNROLL
      for (int word = 0; word < 4; ++word) {
        message.at[word] =
            convert::bits_float(convert::pack<Element>(tile.output.get(first + word * 2) * part[word % 2],
                                                       tile.output.get(first + word * 2 + 1) * part[word % 2]));
      }
      return message;
    }
    return {
        {tile.output.get(first), tile.output.get(first + 1), tile.output.get(first + 2), tile.output.get(first + 3)}};
  }

  template <SplitConfig config, typename Messages>
  TH_DEVICE void merge(Tile<config>& tile, Messages&& message) const {
    const Message rows = message(config.messages() - 1);
    float kept[2];
    float added[2];
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float running_max = math::max(tile.merged_max[half], rows.at[half]);
      kept[half] = math::exp2_approx(tile.merged_max[half] - running_max);
      added[half] = math::exp2_approx(rows.at[half] - running_max);
      tile.merged_max[half] = running_max;
      tile.merged_sum[half] = math::fma(tile.merged_sum[half], kept[half], rows.at[2 + half] * added[half]);
      if constexpr (config.narrow_exchange) {
        added[half] *= rows.at[2 + half];
      }
    }
    TH_UNROLL
    for (int index = 0; index < config.messages() - 1; ++index) {
      const Message columns = message(index);
      TH_UNROLL
      for (int i = 0; i < 4; ++i) {
        if constexpr (config.narrow_exchange) {
          const u32 pair = convert::float_bits(columns.at[i]);
          add(tile.merged, index * 8 + i * 2, kept[i % 2],
              convert::to_float(Element{static_cast<u16>(pair & 0xFFFFU)}) * added[i % 2]);
          add(tile.merged, index * 8 + i * 2 + 1, kept[i % 2],
              convert::to_float(Element{static_cast<u16>(pair >> 16)}) * added[i % 2]);
        } else {
          add(tile.merged, index * 4 + i, kept[i / 2], columns.at[i] * added[i / 2]);
        }
      }
    }
  }

  /// Block `rank`, which is this one, starts from its own part.
  template <SplitConfig config>
  TH_DEVICE void take_own(Tile<config>& tile, int rank) const {
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      tile.merged_max[half] = tile.rows.running_max[half];
      tile.merged_sum[half] = tile.rows.running_sum[half];
    }
    TH_UNROLL
    for (int i = 0; i < config.merged_columns() / 2; ++i) {
      tile.merged.set(i, tile.output.get(rank * config.merged_columns() / 2 + i));
    }
  }

  template <SplitConfig config>
  TH_DEVICE void finish(const SplitWork& work, Tile<config>& tile) const {
    const i32 first_column = work.rank * config.merged_columns();
    i32 row[2];
    RowEnd row_end[2];
    TH_UNROLL
    for (int half = 0; half < 2; ++half) {
      const i32 query = work.first_row + fragment_row() + half * 8;
      const bool stored = config.whole || query < work.sequence.queries;
      const Visible visible = visible_keys(params, work.sequence, query);
      row[half] = stored ? query : -1;
      row_end[half] = end_of<config>(tile, half, work.sequence.head, visible.begin < visible.end);
    }
    scale_rows(tile.merged, row_end[0].factor, row_end[1].factor);
    store_rows<Element>(params, work.sequence, row, first_column, tile.merged);
    if (work.rank == 0) {
      store_lse(params, work.sequence, row, row_end);
    }
    if (!config.whole && may_be_spoilt(work)) {
      recompute_rows<Element, Element, Element, config.head_dim, config.head_dim>(
          params, work.sequence, row, find_spoilt_rows(row, tile.merged), first_column,
          first_column + config.merged_columns());
    }
  }

 private:
  TH_DEVICE At<5> chunk_place(const SplitWork& work, int chunk) const {
    return map_place(params, work.sequence, work.sequence.first_key + work.first_key + chunk * SplitConfig::chunk, 0,
                     work.sequence.kv_head);
  }

  /// Rows of whole tiles all see keys and have no sink.
  template <SplitConfig config>
  TH_DEVICE RowEnd end_of(const Tile<config>& tile, int half, i32 head, bool sees) const {
    const float running_max = tile.merged_max[half];
    const float sum = tile.merged_sum[half];
    return config.whole ? RowEnd{math::reciprocal_approx(sum), lse_of(running_max, sum)}
                        : end_row(params, head, running_max, sum, sees);
  }

  template <int columns>
  TH_DEVICE static void add(Accumulators<columns>& sums, int i, float kept, float added) {
    sums.set(i, math::fma(sums.get(i), kept, added));
  }
  TH_DEVICE float factor() const { return logits == Logits::general ? 1.0F : params.scale_log2; }

  /// Some block of the cluster may have masked a key of a chunk.
  TH_DEVICE bool may_be_spoilt(const SplitWork& work) const {
    const i32 last = least(work.first_row + SplitConfig::rows, work.sequence.queries) - 1;
    return visible_keys(params, work.sequence, last).begin > 0 ||
           visible_keys(params, work.sequence, work.first_row).end < work.sequence.keys ||
           work.sequence.keys % SplitConfig::chunk != 0 || work.end_key - work.first_key != 2 * SplitConfig::chunk;
  }
};

template <SplitConfig config, typename Element, Logits logits>
TH_KERNEL(SplitConfig::threads, 1)
split(TH_GRID_CONSTANT const Params params) {
  pipeline::attention::split<config>(SplitAttention<Element, logits>{params});
}

}  // namespace thresher::strategies::attention
