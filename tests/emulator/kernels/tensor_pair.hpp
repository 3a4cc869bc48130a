#pragma once
// Two blocks of a cluster that multiply as one: C[256, 64] = A[256, k]·B[64, k]ᵀ of NVFP4 operands. Each block holds
// half of A's rows and of B's, and all scales of B; the even one's warp 5 issues for both. Each `PairDefect` is one
// line that differs.
#include "machine/machine.hpp"
#include "machine/tcgen05.hpp"

namespace planted {

using namespace thresher::machine;

enum class PairDefect {
  none,
  scales_of_b_in_one_block,     // the odd block does not load B's scales
  commit_to_own_block,          // the other block's loader never learns that a slot is free
  full_expects_one_arrival,     // the even block's barrier counts one loader
  odd_loads_on_own_barrier,     // the odd block's copies complete on its own barrier
  odd_returns_early,            // the odd block ends while the even one multiplies with it
  both_issue,                   // both blocks issue the products
  allocates_before_meeting,     // nobody has waited for the other block to start
  leaves_places_apart,          // the two blocks leave the place of their columns in other words
  frees_before_meeting,         // a block gives back while the other still multiplies
  one_block_frees,              //
  sums_given_back_by_one_block  // the even block alone says that the sums are loaded
};

struct PairParams {
  TensorMap a;         // bytes: boxes of 128 × 128
  TensorMap b;         // boxes of 32 × 128
  TensorMap a_scales;  // [2 · k/64 · 2][256] bytes: boxes of 8 × 256, the blocks of one half of A behind each other
  TensorMap b_scales;  // [k/64 · 2][256]
  Global<float> c;     // [tiles][256][64]
  u32 steps;           // of 256 along k, for each tile
  u32 tiles;
  PairDefect defect;
};

inline constexpr u32 pair_stages = 2;
inline constexpr u32 pair_columns = 64;
inline constexpr u32 pair_a_bytes = 128 * 128;
inline constexpr u32 pair_b_bytes = pair_columns / 2 * 128;
inline constexpr u32 pair_scale_bytes = 4 * tcgen05::scale_block_bytes;
inline constexpr u32 pair_slot_bytes = pair_a_bytes + pair_b_bytes + 2 * pair_scale_bytes;
inline constexpr u32 pair_shared_bytes = pair_stages * pair_slot_bytes + 128;
inline constexpr u32 pair_set_columns = 32;
inline constexpr u32 pair_allocated = 128;

struct PairKernel {
  const PairParams& params;
  static constexpr Group group = Group::pair;

  TH_DEVICE bool is(PairDefect wanted) const { return params.defect == wanted; }
  TH_DEVICE static bool is_even() { return cluster::rank() == 0; }
  TH_DEVICE Barrier barrier(u32 index) const {
    return Barrier{launch::shared_memory().offset_bytes(pair_stages * pair_slot_bytes).address}.offset(index);
  }
  TH_DEVICE Barrier full(u32 slot) const { return barrier(slot); }
  TH_DEVICE Barrier empty(u32 slot) const { return barrier(pair_stages + slot); }
  TH_DEVICE Barrier sums_full() const { return barrier(2 * pair_stages); }
  TH_DEVICE Barrier sums_empty() const { return barrier(2 * pair_stages + 1); }
  TH_DEVICE Shared<u32> place() const {
    const u32 apart = is(PairDefect::leaves_places_apart) && !is_even() ? 4 : 0;
    return Shared<u32>{launch::shared_memory().offset_bytes(pair_stages * pair_slot_bytes + 64 + apart).address};
  }
  TH_DEVICE Shared<u8> slot_of(u32 slot) const { return launch::shared_memory().offset_bytes(slot * pair_slot_bytes); }

  TH_DEVICE tensor_memory::Columns prepare() const {
    if (launch::thread_index() == 0) {
      for (u32 s = 0; s < pair_stages; ++s) {
        full(s).init(is(PairDefect::full_expects_one_arrival) ? 1 : 2);
        empty(s).init(1);
        debug::name_barrier(full(s), "full", s);
        debug::name_barrier(empty(s), "empty", s);
      }
      sums_full().init(1);
      sums_empty().init(8);
      debug::name_barrier(sums_full(), "sums_full", 0);
      debug::name_barrier(sums_empty(), "sums_empty", 0);
      fence::barrier_init();
    }
    if (!is(PairDefect::allocates_before_meeting)) {
      cluster::sync();
    }
    if (warp::index() == 5) {
      tensor_memory::allocate<group, pair_allocated>(place());
      tensor_memory::give_up_allocation<group>();
    }
    tensor_memory::before_barrier();
    cluster::sync();
    tensor_memory::after_barrier();
    return {place().load()};
  }

  TH_DEVICE void load_slot(u32 step, u32 slot) const {
    const bool has_scales_of_b = is_even() || !is(PairDefect::scales_of_b_in_one_block);
    const u32 bytes = pair_slot_bytes - (has_scales_of_b ? 0 : pair_scale_bytes);
    const i32 along_k = static_cast<i32>(step * 128);
    const i32 rank = static_cast<i32>(cluster::rank());
    const i32 scale_row = static_cast<i32>(step * 8);
    const i32 half_of_scales = static_cast<i32>(params.steps * 8);
    const Shared<u8> to = slot_of(slot);
    const Shared<u8> scales = to.offset(pair_a_bytes + pair_b_bytes);
    if (is(PairDefect::odd_loads_on_own_barrier) && !is_even()) {
      full(slot).arrive_expect_bytes(bytes);
      tma::load(to, params.a, full(slot), At{along_k, rank * 128});
      tma::load(to.offset(pair_a_bytes), params.b, full(slot), At{along_k, rank * 32});
      tma::load(scales, params.a_scales, full(slot), At{0, rank * half_of_scales + scale_row});
      tma::load(scales.offset(pair_scale_bytes), params.b_scales, full(slot), At{0, scale_row});
      return;
    }
    cluster::map(full(slot), 0).arrive_expect_bytes(bytes);
    tma::load_pair(to, params.a, full(slot), At{along_k, rank * 128});
    tma::load_pair(to.offset(pair_a_bytes), params.b, full(slot), At{along_k, rank * 32});
    tma::load_pair(scales, params.a_scales, full(slot), At{0, rank * half_of_scales + scale_row});
    if (has_scales_of_b) {
      tma::load_pair(scales.offset(pair_scale_bytes), params.b_scales, full(slot), At{0, scale_row});
    }
  }

  TH_DEVICE void load() const {
    debug::role("load");
    Phase phase{1};
    for (u32 i = 0, slot = 0; i < params.tiles * params.steps; ++i) {
      empty(slot).wait(phase);
      if (warp::elect()) {
        load_slot(i % params.steps, slot);
      }
      if (++slot == pair_stages) {
        slot = 0;
        phase.flip();
      }
    }
  }

  TH_DEVICE void commit(Barrier done) const {
    if (is(PairDefect::commit_to_own_block)) {
      tcgen05::commit<group>(done);
    } else {
      tcgen05::commit_multicast<group>(done, 3);
    }
  }

  TH_DEVICE void multiply_slot(tensor_memory::Columns sums, u32 slot, bool first) const {
    const Shared<u8> from = slot_of(slot);
    const auto a = tcgen05::descriptor<Swizzle::b128>(from, 0, 1024);
    const auto b = tcgen05::descriptor<Swizzle::b128>(from.offset(pair_a_bytes), 0, 1024);
    const Shared<u8> scales = from.offset(pair_a_bytes + pair_b_bytes);
    const auto set = sums.plus(pair_columns + slot * pair_set_columns);
    constexpr auto word = tcgen05::instruction<tcgen05::Kind::nvfp4>(256, pair_columns);
    for (u32 k = 0; k < 4; ++k) {
      const auto a_scales = set.plus(k * 4);
      const auto b_scales = set.plus(16 + k * 4);
      const u32 offset = k * tcgen05::scale_block_bytes;
      tcgen05::copy_scales<group>(a_scales, tcgen05::scale_block(scales.offset(offset)));
      tcgen05::copy_scales<group>(b_scales, tcgen05::scale_block(scales.offset(pair_scale_bytes + offset)));
      tcgen05::multiply_scaled<group>(sums, a.advance(k * 32), b.advance(k * 32), word, a_scales, b_scales,
                                      !first || k != 0);
    }
  }

  TH_DEVICE void multiply(tensor_memory::Columns sums) const {
    debug::role("multiply");
    Phase phase{0};
    Phase sums_phase{1};
    for (u32 tile = 0, slot = 0; tile < params.tiles; ++tile) {
      sums_empty().wait_cluster(sums_phase);
      sums_phase.flip();
      for (u32 step = 0; step < params.steps; ++step) {
        if (is_even()) {
          full(slot).wait_cluster(phase);
        }
        tensor_memory::after_barrier();
        multiply_slot(sums, slot, step == 0);
        commit(empty(slot));
        if (++slot == pair_stages) {
          slot = 0;
          phase.flip();
        }
      }
      commit(sums_full());
    }
  }

  TH_DEVICE void finish(tensor_memory::Columns sums) const {
    debug::role("finish");
    Phase phase{0};
    for (u32 tile = 0; tile < params.tiles; ++tile) {
      sums_full().wait(phase);
      phase.flip();
      tensor_memory::after_barrier();
      auto words = tensor_memory::load_rows<pair_columns>(sums);
      tensor_memory::wait_loads(words);
      tensor_memory::before_barrier();
      warp::sync();
      if (warp::elect()) {
        if (is(PairDefect::sums_given_back_by_one_block)) {
          sums_empty().arrive(is_even() ? 2 : 1);
        } else {
          cluster::map(sums_empty(), 0).arrive();
        }
      }
      const u32 row = cluster::rank() * 128 + launch::thread_index();
      for (u32 n = 0; n < pair_columns; ++n) {
        params.c.store((tile * 256 + row) * pair_columns + n, words.get_float(static_cast<int>(n)));
      }
    }
  }
};

TH_KERNEL(192, 1) tensor_pair(TH_GRID_CONSTANT const PairParams params) {
  const PairKernel kernel{params};
  const tensor_memory::Columns sums = kernel.prepare();
  const u32 warp = warp::index();
  const bool leaves = kernel.is(PairDefect::odd_returns_early) && !PairKernel::is_even();
  if (warp < 4) {
    if (!leaves) {
      kernel.finish(sums);
    }
  } else if (warp == 4) {
    kernel.load();
  } else if (PairKernel::is_even() || kernel.is(PairDefect::both_issue)) {
    if (warp::elect()) {
      kernel.multiply(sums);
    }
  }
  if (leaves) {
    return;
  }
  tensor_memory::before_barrier();
  if (kernel.is(PairDefect::frees_before_meeting)) {
    block::sync();
  } else {
    cluster::sync();
  }
  tensor_memory::after_barrier();
  if (warp == 5) {
    warp::sync();
    if (PairKernel::is_even() || !kernel.is(PairDefect::one_block_frees)) {
      tensor_memory::deallocate<PairKernel::group, pair_allocated>(sums);
    }
  }
}

}  // namespace planted
