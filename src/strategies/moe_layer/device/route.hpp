#pragma once
/// Permutes top-k assignments by expert, stably: an assignment has the same row on every schedule. Each warp of a block
/// has an equal run of the block's assignments and ranks its own, so that the result does not depend on the warps'
/// order. Where rows are gathered, many blocks permute the same assignments. Each places its own part and copies its
/// rows, and none waits for another.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "strategies/moe_layer/device/bring_rows.hpp"

namespace thresher::strategies::moe_layer {

TH_DEVICE bool brings_rows(const RouteParams& params) { return params.gather.row_bytes > 0; }

class RouteBlock {
 public:
  TH_DEVICE explicit RouteBlock(const RouteParams& params)
      : params_(params),
        keys_(params.experts + 1),
        warp_(warp::index()),
        counts_(launch::shared_memory().as<u32>()),
        before_(counts_.offset(route_warps * keys_)),
        sums_(before_.offset(keys_)),
        rows_(sums_.offset(keys_)),
        kept_(rows_.offset(max_part_choices + launch::thread_index())) {
    const u32 first = launch::block_index().x * block_choices;
    own_.first = first + launch::block_index().y * params.part_choices;
    own_.end = own_.first + params.part_choices < params.choices ? own_.first + params.part_choices : params.choices;
    const u32 behind = params.choices - first;
    const u32 run = ((behind < block_choices ? behind : block_choices) + route_threads - 1) / route_threads * 32;
    run_first_ = first + warp_ * run;
    run_end_ = run_first_ + run < params.choices ? run_first_ + run : params.choices;
    rounds_ = run_first_ < params.choices ? run / 32 : 0;
  }

  /// The last assignments may be fewer than a block permutes, and some blocks then have no part of them.
  TH_DEVICE bool has_part() const { return own_.first < own_.end; }

  /// Loads the thread's assignments, all at once, and keeps the expert of each. An id of no expert is params.experts.
  TH_DEVICE void load() const {
    constexpr u32 max_rounds = block_choices / route_threads;
    u32 ids[max_rounds];
    TH_UNROLL
    for (u32 round = 0; round < max_rounds; ++round) {
      const u32 choice = choice_in(round);
      ids[round] = choice < run_end_ ? static_cast<u32>(params_.ids.load(choice)) : params_.experts;
    }
    TH_UNROLL
    for (u32 round = 0; round < max_rounds; ++round) {
      if (round < rounds_) {
        kept_.store(round * route_threads, ids[round] < params_.experts ? ids[round] : params_.experts);
      }
    }
  }

  /// Counts each expert's assignments: before the block's own, warp by warp with the block's own, and behind them. A
  /// thread keeps how many of its warp precede each of the block's own and have the same expert.
  TH_DEVICE void count() const {
    for (u32 at = launch::thread_index(); at < (route_warps + 2) * keys_; at += route_threads) {
      counts_.store(at, 0);
    }
    block::sync();
    TH_NO_UNROLL
    for (u32 round = 0; round < rounds_; ++round) {
      const u32 first = run_first_ + round * 32;
      const u32 expert = kept_.load(round * route_threads);
      if (first + 32 <= own_.first) {
        before_.atomic_add(expert, 1);
      } else if (first >= own_.end) {
        sums_.atomic_add(expert, 1);
      } else {
        rank(round, expert);
      }
    }
    block::sync();
  }

  /// The count of an expert over all warps. Afterwards counts_ has the sum of the earlier warps, from `before` on.
  TH_DEVICE u32 add_up_warps(u32 expert, u32 before) const {
    u32 counts[route_warps];
    TH_UNROLL
    for (u32 warp = 0; warp < route_warps; ++warp) {
      counts[warp] = counts_.load(warp * keys_ + expert);
    }
    u32 all = 0;
    TH_UNROLL
    for (u32 warp = 0; warp < route_warps; ++warp) {
      counts_.store(warp * keys_ + expert, before + all);
      all += counts[warp];
    }
    return all;
  }

  TH_DEVICE void store_counts() const {
    for (u32 expert = launch::thread_index(); expert < params_.experts; expert += route_threads) {
      params_.counts.store(static_cast<i64>(launch::block_index().x) * params_.experts + expert,
                           static_cast<i32>(sums_.load(expert)));
    }
  }

  /// Leaves in counts_ the number of assignments of an expert that precede a warp's, and in sums_ its first row.
  TH_DEVICE void find_places() const {
    for (u32 expert = launch::thread_index(); expert < params_.experts; expert += route_threads) {
      const OtherBlocks others = count_other_blocks(expert);
      const u32 before = others.before + before_.load(expert);
      sums_.store(expert, before + add_up_warps(expert, before) + sums_.load(expert) + others.behind);
    }
    block::sync();
    if (warp_ == 0) {
      add_up_experts();
    }
    block::sync();
  }

  TH_DEVICE void place() const {
    TH_NO_UNROLL
    for (u32 round = 0; round < rounds_; ++round) {
      if (const u32 choice = choice_in(round); choice >= own_.first && choice < own_.end) {
        const u32 kept = kept_.load(round * route_threads);
        const u32 expert = kept & ((1U << expert_bits) - 1);
        const u32 rank = kept >> expert_bits;
        const bool is_skipped = expert == params_.experts;
        place(choice, is_skipped ? no_row : sums_.load(expert) + counts_.load(warp_ * keys_ + expert) + rank);
      }
    }
    const u32 rows = sums_.load(params_.experts);
    for (u32 row = own_.first + launch::thread_index(); row < own_.end; row += route_threads) {
      if (row >= rows) {
        params_.row_ids.store(row, -1);
      }
    }
    if (launch::block_index().x == 0 && launch::block_index().y == 0) {
      for (u32 bound = launch::thread_index(); bound < keys_; bound += route_threads) {
        params_.offsets.store(bound, static_cast<i32>(sums_.load(bound)));
      }
    }
  }

  TH_DEVICE OwnChoices own() const { return own_; }
  /// The rows of its own assignments, or no_row, where rows are gathered.
  TH_DEVICE Shared<u32> rows() const { return rows_; }

 private:
  static constexpr u32 expert_bits = 16;

  TH_DEVICE u32 choice_in(u32 round) const { return run_first_ + round * 32 + warp::lane(); }

  /// Counts a warp's 32 assignments of a round behind those of its earlier rounds.
  TH_DEVICE void rank(u32 round, u32 expert) const {
    const u32 alike = lanes_alike(expert);
    const u32 rank = bits::count_ones(alike & ((1U << warp::lane()) - 1));
    const u32 before = counts_.load(warp_ * keys_ + expert);
    kept_.store(round * route_threads, expert | (before + rank) << expert_bits);
    warp::sync();
    if (rank == 0) {
      counts_.store(warp_ * keys_ + expert, before + bits::count_ones(alike));
    }
    warp::sync();
  }

  /// The lanes of this warp whose key is this lane's. Keys are numbers up to params_.experts, so that all of them agree
  /// in the bits behind key_bits.
  TH_DEVICE u32 lanes_alike(u32 key) const {
    constexpr u32 together = 4;  // ballots that do not wait for each other
    u32 alike = warp::all_lanes;
    TH_NO_UNROLL
    for (u32 first = 0; first < params_.key_bits; first += together) {
      TH_UNROLL
      for (u32 bit = 0; bit < together; ++bit) {
        const bool is_set = (key >> (first + bit) & 1U) != 0;
        const u32 set = warp::ballot(is_set);
        alike &= is_set ? set : ~set;
      }
    }
    return alike;
  }

  /// An expert's assignments in the blocks before this one and in those behind it.
  struct OtherBlocks {
    u32 before = 0;
    u32 behind = 0;
  };

  TH_DEVICE OtherBlocks count_other_blocks(u32 expert) const {
    constexpr u32 together = 8;
    const u32 blocks = launch::block_count().x > 1 ? launch::block_count().x : 0;
    OtherBlocks others;
    TH_NO_UNROLL
    for (u32 first = 0; first < blocks; first += together) {
      i32 counts[together];
      TH_UNROLL
      for (u32 i = 0; i < together; ++i) {
        const i64 at = static_cast<i64>(first + i) * params_.experts + expert;
        counts[i] = first + i < blocks ? params_.counts.load(at) : 0;
      }
      TH_UNROLL
      for (u32 i = 0; i < together; ++i) {
        others.before += first + i < launch::block_index().x ? static_cast<u32>(counts[i]) : 0;
        others.behind += first + i > launch::block_index().x ? static_cast<u32>(counts[i]) : 0;
      }
    }
    return others;
  }

  TH_DEVICE void place(u32 choice, u32 row) const {
    params_.inverse.store(choice, static_cast<i32>(row));
    if (row != no_row) {
      params_.row_ids.store(row, static_cast<i32>(choice));
    }
    if (brings_rows(params_)) {
      rows_.store(choice - own_.first, row);
    }
  }

  /// One warp calls it: sums_ becomes the sum before each expert, with the total behind the last.
  TH_DEVICE void add_up_experts() const {
    const u32 each = (params_.experts + 31) / 32;
    const u32 begin = warp::lane() * each;
    u32 own = 0;
    for (u32 expert = begin; expert < begin + each && expert < params_.experts; ++expert) {
      own += sums_.load(expert);
    }
    u32 upto = own;
    for (u32 distance = 1; distance < 32; distance *= 2) {
      const u32 other = warp::shuffle_up(upto, distance);
      upto += warp::lane() >= distance ? other : 0;
    }
    u32 sum = upto - own;
    for (u32 expert = begin; expert < begin + each && expert < params_.experts; ++expert) {
      const u32 rows = sums_.load(expert);
      sums_.store(expert, sum);
      sum += rows;
    }
    if (warp::lane() == 31) {
      sums_.store(params_.experts, upto);
    }
  }

  const RouteParams& params_;
  u32 keys_;
  u32 warp_;
  OwnChoices own_;
  u32 run_first_;  ///< the first assignment of the warp
  u32 run_end_;    ///< and the one behind its last
  u32 rounds_;     ///< in which a warp takes its assignments, 32 at a time
  Shared<u32> counts_;
  Shared<u32> before_;  ///< in rounds ahead of the block's own assignments
  Shared<u32> sums_;    ///< at first of the rounds behind them
  Shared<u32> rows_;    ///< of the block's own assignments, where they are gathered
  Shared<u32> kept_;    ///< of each round a word: the expert, and in higher bits the rank
};

/// Counts each expert's assignments among those of each block, none of which are its own: part_choices is 0.
TH_KERNEL(route_threads, 1) count_choices_kernel(TH_GRID_CONSTANT const RouteParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const RouteBlock own(params);
  own.load();
  own.count();
  own.store_counts();
}

/// Permutes, and counts first where one block permutes all. It asks for `rows` of the block's own assignments on the
/// way.
template <class Rows>
TH_DEVICE void permute(const RouteBlock& choices, Rows& rows) {
  launch::wait_for_earlier_grids();
  choices.load();
  rows.load();
  choices.count();
  choices.find_places();
  choices.place();
}

/// The grid is [blocks of different assignments, parts].
TH_KERNEL(route_threads, 1) place_choices_kernel(TH_GRID_CONSTANT const RouteParams params) {
  launch::release_dependents();
  const RouteBlock choices(params);
  if (!choices.has_part()) {
    return;
  }
  const u32 pieces = params.gather.row_bytes / 16;
  TokenPieces<Vector<u32, 4>, 8> rows(params.gather, choices.own(), 0, pieces);
  permute(choices, rows);
  if (brings_rows(params)) {
    block::sync();
    store_all(rows, choices.rows());
    TokenPieces<u16, 1> rest(params.gather, choices.own(), pieces * 8, params.gather.row_bytes / 2 - pieces * 8);
    rest.load();
    store_all(rest, choices.rows());
  }
}

}  // namespace thresher::strategies::moe_layer
