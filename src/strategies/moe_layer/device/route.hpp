#pragma once
/// Choices sorted by expert, stably: whatever the schedule, a row is of the same choice. A block has so many choices
/// and each of its warps a run of them; what a warp counts is its own, so that no order depends on who comes first.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "strategies/moe_layer/params.hpp"

namespace thresher::strategies::moe_layer {

using namespace machine;

inline constexpr u32 warp_choices = block_choices / route_warps;

class RouteBlock {
 public:
  TH_DEVICE explicit RouteBlock(const RouteParams& params)
      : params_(params),
        keys_(params.experts + 1),
        warp_(warp::index()),
        first_(launch::block_index().x * block_choices),
        counts_(launch::shared_memory().as<u32>()),
        sums_(counts_.offset(route_warps * keys_)) {}

  /// Counts the choices of each warp.
  TH_DEVICE void count() const {
    for (u32 at = launch::thread_index(); at < route_warps * keys_; at += route_threads) {
      counts_.store(at, 0);
    }
    block::sync();
    for_each([](u32, u32, u32) {});
    block::sync();
  }

  /// What all warps have counted of an expert; behind it counts_ says how many earlier warps have.
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

  /// Leaves in counts_ how many choices of an expert precede those of a warp, and in sums_ its first row.
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
    for_each([this](u32 choice, u32 expert, u32 rank) {
      const bool is_skipped = expert == params_.experts;
      const u32 row = is_skipped ? 0 : sums_.load(expert) + counts_.load(warp_ * keys_ + expert) + rank;
      params_.inverse.store(choice, is_skipped ? -1 : static_cast<i32>(row));
      if (!is_skipped) {
        params_.row_ids.store(row, static_cast<i32>(choice));
      }
    });
    const u32 rows = sums_.load(params_.experts);
    for (u32 at = launch::thread_index(); at < block_choices; at += route_threads) {
      const u32 row = first_ + at;
      if (row >= rows && row < params_.choices) {
        params_.row_ids.store(row, -1);
      }
    }
    if (launch::block_index().x == 0) {
      for (u32 bound = launch::thread_index(); bound < keys_; bound += route_threads) {
        params_.offsets.store(bound, static_cast<i32>(sums_.load(bound)));
      }
    }
  }

 private:
  /// The warp's choices, 32 at a time: `see(choice, expert, rank)` with how many of these 32 precede it and have the
  /// same expert. Then they are counted.
  template <class See>
  TH_DEVICE void for_each(const See& see) const {
    const u32 begin = first_ + warp_ * warp_choices;
    for (u32 at = begin; at < begin + warp_choices && at < params_.choices; at += 32) {
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

  /// By one warp: sums_ becomes the sums before each expert, and behind the last all of them.
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
  Shared<u32> counts_;
  Shared<u32> sums_;
};

/// How many choices each expert has in each block.
TH_KERNEL(route_threads, 1) count_choices_kernel(TH_GRID_CONSTANT const RouteParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const RouteBlock own(params);
  own.count();
  own.store_counts();
}

/// The rest; all of it where there is one block.
TH_KERNEL(route_threads, 1) place_choices_kernel(TH_GRID_CONSTANT const RouteParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const RouteBlock own(params);
  own.count();
  own.find_places();
  own.place();
}

}  // namespace thresher::strategies::moe_layer
