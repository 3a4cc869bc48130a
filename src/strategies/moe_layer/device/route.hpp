#pragma once
/// Permutes top-k assignments by expert, stably: an assignment has the same row on every schedule. Each warp of a block
/// has an equal run of the block's assignments and counts for itself, so
/// the result does not depend on the warps' order.
/// Where rows are gathered, many blocks permute the same assignments. Each places its own part and copies its rows, and
/// none waits for another.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "strategies/moe_layer/params.hpp"

namespace thresher::strategies::moe_layer {

using namespace machine;

using gemm::gather_row;
using gemm::RowThread;

/// The threads that share a row where a block has several rows: each copies at least 32 bytes.
TH_DEVICE u32 threads_of_row(u32 row_bytes) { return row_bytes <= 1024 ? 32 : row_bytes <= 2048 ? 64 : 128; }

TH_DEVICE bool brings_rows(const RouteParams& params) { return params.gather.row_bytes > 0; }

class RouteBlock {
 public:
  TH_DEVICE explicit RouteBlock(const RouteParams& params)
      : params_(params),
        keys_(params.experts + 1),
        warp_(warp::index()),
        first_(launch::block_index().x * block_choices),
        own_first_(first_ + launch::block_index().y * params.part_choices),
        own_end_(own_first_ + params.part_choices < params.choices ? own_first_ + params.part_choices : params.choices),
        counts_(launch::shared_memory().as<u32>()),
        sums_(counts_.offset(route_warps * keys_)),
        rows_(sums_.offset(keys_)) {}

  /// The last assignments may be fewer than a block permutes, and some blocks then have no part of them.
  TH_DEVICE bool has_part() const { return own_first_ < own_end_; }

  /// Counts the assignments of each warp.
  TH_DEVICE void count() const {
    for (u32 at = launch::thread_index(); at < route_warps * keys_; at += route_threads) {
      counts_.store(at, 0);
    }
    block::sync();
    for_each(first_, params_.choices, [](u32, u32, u32) {});
    block::sync();
  }

  /// The count of an expert over all warps. Afterwards counts_ has the sum of the earlier warps, from `before` on.
  TH_DEVICE u32 add_up_warps(u32 expert, u32 before) const {
    u32 all = 0;
    for (u32 of = 0; of < route_warps; ++of) {
      const u32 own = counts_.load(of * keys_ + expert);
      counts_.store(of * keys_ + expert, before + all);
      all += own;
    }
    return all;
  }

  TH_DEVICE void store_counts() const {
    for (u32 expert = launch::thread_index(); expert < params_.experts; expert += route_threads) {
      params_.counts.store(static_cast<i64>(launch::block_index().x) * params_.experts + expert,
                           static_cast<i32>(add_up_warps(expert, 0)));
    }
  }

  /// Leaves in counts_ the number of assignments of an expert that precede a warp's, and in sums_ its first row.
  TH_DEVICE void find_places() const {
    for (u32 expert = launch::thread_index(); expert < params_.experts; expert += route_threads) {
      u32 before = 0;
      u32 behind = 0;
      for (u32 other = 0; launch::block_count().x > 1 && other < launch::block_count().x; ++other) {
        const u32 of_other = static_cast<u32>(params_.counts.load(static_cast<i64>(other) * params_.experts + expert));
        before += other < launch::block_index().x ? of_other : 0;
        behind += other > launch::block_index().x ? of_other : 0;
      }
      sums_.store(expert, before + add_up_warps(expert, before) + behind);
    }
    block::sync();
    if (warp_ == 0) {
      add_up_experts();
    }
    block::sync();
  }

  TH_DEVICE void place() const {
    for_each(own_first_, own_end_, [this](u32 choice, u32 expert, u32 rank) {
      if (choice >= own_first_ && choice < own_end_) {
        const bool is_skipped = expert == params_.experts;
        place(choice, is_skipped ? no_row : sums_.load(expert) + counts_.load(warp_ * keys_ + expert) + rank);
      }
    });
    const u32 rows = sums_.load(params_.experts);
    for (u32 row = own_first_ + launch::thread_index(); row < own_end_; row += route_threads) {
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

  /// Copies the rows of the block's own assignments, several at a time; all threads share a single one.
  TH_DEVICE void bring_rows() const {
    const u32 count = own_end_ - own_first_;
    const u32 sharing = count == 1 ? route_threads : threads_of_row(params_.gather.row_bytes);
    const RowThread own{launch::thread_index() % sharing, sharing};
    for (u32 at = launch::thread_index() / sharing; at < count; at += route_threads / sharing) {
      const u32 row = rows_.load(at);
      if (row != no_row) {
        gather_row(params_.gather, row, own_first_ + at, own);
      }
    }
  }

 private:
  static constexpr u32 no_row = 0xFFFF'FFFF;  // −1 in the inverse

  TH_DEVICE void place(u32 choice, u32 row) const {
    params_.inverse.store(choice, static_cast<i32>(row));
    if (row != no_row) {
      params_.row_ids.store(row, static_cast<i32>(choice));
    }
    if (brings_rows(params_)) {
      rows_.store(choice - own_first_, row);
    }
  }

  /// Calls `see(choice, expert, rank)` for the warp's assignments, 32 at a time, and then counts them. `rank` is the
  /// number of these 32 that precede it and have the same expert. A run before `first` is skipped, as is all from `end`
  /// on.
  template <class See>
  TH_DEVICE void for_each(u32 first, u32 end, const See& see) const {
    constexpr u32 lanes = route_warps * 32;
    const u32 behind = params_.choices - first_;
    const u32 run = ((behind < block_choices ? behind : block_choices) + lanes - 1) / lanes * 32;
    const u32 begin = first_ + warp_ * run;
    if (begin + run <= first) {
      return;
    }
    for (u32 at = begin; at < begin + run && at < end; at += 32) {
      const u32 choice = at + warp::lane();
      const bool is_one = choice < params_.choices;
      const u32 id = is_one ? static_cast<u32>(params_.ids.load(choice)) : params_.experts;
      const u32 expert = id < params_.experts ? id : params_.experts;
      const u32 alike = lanes_alike(expert);
      const u32 rank = bits::count_ones(alike & ((1U << warp::lane()) - 1));
      if (is_one) {
        see(choice, expert, rank);
      }
      warp::sync();
      if (rank == 0) {
        const u32 count = warp_ * keys_ + expert;
        counts_.store(count, counts_.load(count) + bits::count_ones(alike));
      }
      warp::sync();
    }
  }

  /// The lanes of this warp whose key is this lane's.
  TH_DEVICE u32 lanes_alike(u32 key) const {
    u32 alike = warp::all_lanes;
    for (u32 bit = 0; bit < params_.key_bits; ++bit) {
      const bool is_set = (key >> bit & 1U) != 0;
      const u32 set = warp::ballot(is_set);
      alike &= is_set ? set : ~set;
    }
    return alike;
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
  u32 first_;
  u32 own_first_;
  u32 own_end_;
  Shared<u32> counts_;
  Shared<u32> sums_;
  Shared<u32> rows_;  ///< of the block's own assignments, where they are gathered
};

/// Counts each expert's assignments among those of each block.
TH_KERNEL(route_threads, 1) count_choices_kernel(TH_GRID_CONSTANT const RouteParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const RouteBlock own(params);
  own.count();
  own.store_counts();
}

/// Permutes, and counts first where one block permutes all. The grid is [blocks of different assignments, parts].
TH_KERNEL(route_threads, 1) place_choices_kernel(TH_GRID_CONSTANT const RouteParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const RouteBlock own(params);
  if (!own.has_part()) {
    return;
  }
  own.count();
  own.find_places();
  own.place();
  if (brings_rows(params)) {
    block::sync();
    own.bring_rows();
  }
}

}  // namespace thresher::strategies::moe_layer
