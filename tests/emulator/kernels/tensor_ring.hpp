#pragma once
// A ring whose slots a tensor core multiplies into tensor memory: C[128, 64] = A[128, k]·B[64, k]ᵀ of NVFP4 operands,
// for several tiles one after the other. Warps 0 to 3 finish, warp 4 loads, warp 5 multiplies and owns the tensor
// memory. Each `TensorDefect` is one line that differs.
#include "machine/machine.hpp"
#include "machine/tcgen05.hpp"

namespace planted {

using namespace thresher::machine;

enum class TensorDefect {
  none,
  released_by_arrive,         // a slot is released by an ordinary arrival
  commit_before_multiply,     // the commit of a slot comes before its last product
  no_wait_for_sums,           // the finishing warps do not wait for the products
  no_after_barrier,           // they load without the fence behind the barrier
  no_wait_for_loads,          // and use what they load at once
  arrive_before_loads,        // the sums are given back before the loads have arrived
  no_before_barrier,          // the fence before that barrier is missing
  no_wait_for_empty_sums,     // the second tile's products do not wait for the first's loads
  one_set_of_scales,          // every step copies its scales over those of the step before
  scales_after_products,      // the scales of a product are copied behind it
  scales_in_sums,             // the columns of the scales are columns of the sums
  adds_at_first,              // the first product adds to nothing
  beyond_allocation,          // the sums end behind the allocation
  other_quarter,              // a warp loads the next quarter's lanes
  other_column_in_a_lane,     // the threads of a warp load different columns
  not_elected,                // all threads of the warp multiply
  too_many_columns,           // the instruction has more columns than B has rows
  too_many_rows,              // the instruction has rows of a pair
  descriptor_of_wgmma,        // the descriptor lacks the version
  descriptor_off_its_atom,    // the operand starts between swizzle atoms
  no_proxy_fence,             // ordinary stores bring scales, without a fence
  other_shape_on_sums,        // products of two shapes on the same sums
  freed_while_loaded,         // nobody waits for the loads before the memory is given back
  never_freed,                //
  freed_twice,                //
  freed_in_another_size,      //
  allocates_after_giving_up,  //
  allocates_more_than_before,
  no_meeting_after_allocation,  // the place is read, and used, before anything orders it
  nobody_waits,                 // the last products are waited for by nobody
  mask_beyond_cluster,          // a commit to blocks that there are not
};

struct TensorRingParams {
  TensorMap a;  // bytes: boxes of 128 × 128
  TensorMap b;  // boxes of 64 × 128
  Global<u8> a_scales;
  Global<u8> b_scales;
  Global<float> c;  // [tiles][128][64]
  u32 steps;        // of 256 along k, for each tile
  u32 tiles;
  TensorDefect defect;
};

inline constexpr u32 tensor_stages = 2;
inline constexpr u32 tensor_columns = 64;  // of D
inline constexpr u32 tensor_k_blocks = 4;  // instructions a slot
inline constexpr u32 tensor_a_bytes = 128 * 128;
inline constexpr u32 tensor_b_bytes = tensor_columns * 128;
inline constexpr u32 tensor_scale_bytes = tensor_k_blocks * tcgen05::scale_block_bytes;
inline constexpr u32 tensor_slot_bytes = tensor_a_bytes + tensor_b_bytes + 2 * tensor_scale_bytes;
inline constexpr u32 tensor_shared_bytes = tensor_stages * tensor_slot_bytes + 128;
inline constexpr u32 tensor_set_columns = 2 * tensor_k_blocks * tcgen05::scale_block_columns;
inline constexpr u32 tensor_allocated = 128;
static_assert(tensor_columns + tensor_stages * tensor_set_columns <= tensor_allocated);

struct TensorRingKernel {
  const TensorRingParams& params;
  static constexpr Group group = Group::block;

  TH_DEVICE bool is(TensorDefect wanted) const { return params.defect == wanted; }
  TH_DEVICE Barrier barrier(u32 index) const {
    return Barrier{launch::shared_memory().offset_bytes(tensor_stages * tensor_slot_bytes).address}.offset(index);
  }
  TH_DEVICE Barrier full(u32 slot) const { return barrier(slot); }
  TH_DEVICE Barrier empty(u32 slot) const { return barrier(tensor_stages + slot); }
  TH_DEVICE Barrier sums_full() const { return barrier(2 * tensor_stages); }
  TH_DEVICE Barrier sums_empty() const { return barrier(2 * tensor_stages + 1); }
  TH_DEVICE Shared<u32> place() const {
    return Shared<u32>{launch::shared_memory().offset_bytes(tensor_stages * tensor_slot_bytes + 64).address};
  }
  TH_DEVICE Shared<u8> slot_of(u32 slot) const {
    return launch::shared_memory().offset_bytes(slot * tensor_slot_bytes);
  }

  TH_DEVICE void allocate() const {
    tensor_memory::allocate<group, tensor_allocated>(place());
    if (is(TensorDefect::allocates_more_than_before)) {
      tensor_memory::allocate<group, 256>(place().offset(1));
    }
    tensor_memory::give_up_allocation<group>();
    if (is(TensorDefect::allocates_after_giving_up)) {
      tensor_memory::allocate<group, 32>(place().offset(1));
    }
  }

  TH_DEVICE tensor_memory::Columns prepare() const {
    if (launch::thread_index() == 0) {
      for (u32 s = 0; s < tensor_stages; ++s) {
        full(s).init(1);
        empty(s).init(1);
        debug::name_barrier(full(s), "full", s);
        debug::name_barrier(empty(s), "empty", s);
      }
      sums_full().init(1);
      sums_empty().init(4);
      debug::name_barrier(sums_full(), "sums_full", 0);
      debug::name_barrier(sums_empty(), "sums_empty", 0);
      fence::barrier_init();
    }
    if (is(TensorDefect::no_meeting_after_allocation)) {
      block::sync();
    }
    if (warp::index() == 5) {
      allocate();
    }
    tensor_memory::before_barrier();
    if (!is(TensorDefect::no_meeting_after_allocation)) {
      block::sync();
    }
    tensor_memory::after_barrier();
    return {place().load()};
  }

  TH_DEVICE void load_scales(Shared<u8> to, Global<u8> from, u32 step, u32 slot) const {
    if (is(TensorDefect::no_proxy_fence)) {
      for (u32 i = 0; i < tensor_scale_bytes; ++i) {
        to.store(i, from.load(step * tensor_scale_bytes + i));
      }
    } else {
      tma::load_bulk(to, from.offset(step * tensor_scale_bytes), tensor_scale_bytes, full(slot));
    }
  }

  TH_DEVICE void load() const {
    debug::role("load");
    Phase phase{1};
    for (u32 i = 0, slot = 0; i < params.tiles * params.steps; ++i) {
      const u32 step = i % params.steps;
      empty(slot).wait(phase);
      if (warp::elect()) {
        const Shared<u8> to = slot_of(slot);
        const u32 scales = is(TensorDefect::no_proxy_fence) ? 0 : 2 * tensor_scale_bytes;
        load_scales(to.offset(tensor_a_bytes + tensor_b_bytes), params.a_scales, step, slot);
        load_scales(to.offset(tensor_a_bytes + tensor_b_bytes + tensor_scale_bytes), params.b_scales, step, slot);
        full(slot).arrive_expect_bytes(tensor_a_bytes + tensor_b_bytes + scales);
        tma::load(to, params.a, full(slot), At{static_cast<i32>(step * 128), 0});
        tma::load(to.offset(tensor_a_bytes), params.b, full(slot), At{static_cast<i32>(step * 128), 0});
      }
      if (++slot == tensor_stages) {
        slot = 0;
        phase.flip();
      }
    }
  }

  TH_DEVICE void multiply_slot(tensor_memory::Columns sums, tensor_memory::Columns sets, u32 slot, bool first) const {
    const Shared<u8> from = slot_of(slot);
    const u32 shift = is(TensorDefect::descriptor_off_its_atom) ? 128 : 0;
    auto a = tcgen05::descriptor<Swizzle::b128>(from.offset(shift), 0, 1024);
    if (is(TensorDefect::descriptor_of_wgmma)) {
      a.bits &= ~(u64{1} << 46);
    }
    const auto b = tcgen05::descriptor<Swizzle::b128>(from.offset(tensor_a_bytes), 0, 1024);
    const Shared<u8> scales = from.offset(tensor_a_bytes + tensor_b_bytes);
    auto word = tcgen05::instruction<tcgen05::Kind::nvfp4>(is(TensorDefect::too_many_rows) ? 256 : 128, tensor_columns);
    if (is(TensorDefect::too_many_columns)) {
      word = word.with_columns(128);
    }
    const u32 set = is(TensorDefect::one_set_of_scales) ? 0 : slot * tensor_set_columns;
    for (u32 k = 0; k < tensor_k_blocks; ++k) {
      const auto a_scales = is(TensorDefect::scales_in_sums) ? sums : sets.plus(set + k * 4);
      const auto b_scales = sets.plus(set + 16 + k * 4);
      const auto copy = [&] {
        tcgen05::copy_scales<group>(a_scales, tcgen05::scale_block(scales.offset(k * tcgen05::scale_block_bytes)));
        tcgen05::copy_scales<group>(
            b_scales, tcgen05::scale_block(scales.offset(tensor_scale_bytes + k * tcgen05::scale_block_bytes)));
      };
      if (!is(TensorDefect::scales_after_products)) {
        copy();
      }
      if (is(TensorDefect::commit_before_multiply) && k == 3) {
        tcgen05::commit<group>(empty(slot));
      }
      const bool accumulate = !first || k != 0 || is(TensorDefect::adds_at_first);
      const auto shape = is(TensorDefect::other_shape_on_sums) && k == 3 ? word.with_columns(32) : word;
      tcgen05::multiply_scaled<group>(sums, a.advance(k * 32), b.advance(k * 32), shape, a_scales, b_scales,
                                      accumulate);
      if (is(TensorDefect::scales_after_products)) {
        copy();
      }
    }
  }

  TH_DEVICE void release(u32 slot) const {
    if (is(TensorDefect::released_by_arrive)) {
      empty(slot).arrive();
    } else if (is(TensorDefect::mask_beyond_cluster)) {
      tcgen05::commit_multicast<group>(empty(slot), 2);
    } else if (!is(TensorDefect::commit_before_multiply)) {
      tcgen05::commit<group>(empty(slot));
    }
  }

  TH_DEVICE void multiply(tensor_memory::Columns place) const {
    debug::role("multiply");
    const auto sums = is(TensorDefect::beyond_allocation) ? place.plus(tensor_allocated - 32) : place;
    const auto sets = place.plus(is(TensorDefect::beyond_allocation) ? 0 : tensor_columns);
    Phase phase{0};
    Phase sums_phase{1};
    for (u32 tile = 0, slot = 0; tile < params.tiles; ++tile) {
      if (!is(TensorDefect::no_wait_for_empty_sums)) {
        sums_empty().wait(sums_phase);
        sums_phase.flip();
      }
      for (u32 step = 0; step < params.steps; ++step) {
        full(slot).wait(phase);
        tensor_memory::after_barrier();
        multiply_slot(sums, sets, slot, step == 0);
        release(slot);
        if (++slot == tensor_stages) {
          slot = 0;
          phase.flip();
        }
      }
      tcgen05::commit<group>(sums_full());
    }
  }

  TH_DEVICE void store(u32 tile, const tensor_memory::Words<tensor_columns>& words) const {
    const u32 row = launch::thread_index();
    for (u32 n = 0; n < tensor_columns; ++n) {
      params.c.store((tile * 128 + row) * tensor_columns + n, words.get_float(static_cast<int>(n)));
    }
  }

  TH_DEVICE void give_back_sums() const {
    if (!is(TensorDefect::no_before_barrier)) {
      tensor_memory::before_barrier();
    }
    warp::sync();
    if (warp::elect()) {
      sums_empty().arrive();
    }
  }

  TH_DEVICE void finish(tensor_memory::Columns place) const {
    debug::role("finish");
    Phase phase{0};
    for (u32 tile = 0; tile < params.tiles; ++tile) {
      if (!is(TensorDefect::no_wait_for_sums)) {
        sums_full().wait(phase);
        phase.flip();
      }
      if (!is(TensorDefect::no_after_barrier)) {
        tensor_memory::after_barrier();
      }
      auto from = place;
      if (is(TensorDefect::other_quarter)) {
        from.address += 32U << 16U;
      }
      if (is(TensorDefect::other_column_in_a_lane) && warp::lane() == 3) {
        from = from.plus(8);
      }
      auto words = tensor_memory::load_rows<tensor_columns>(from);
      if (is(TensorDefect::arrive_before_loads)) {
        give_back_sums();
      }
      if (!is(TensorDefect::no_wait_for_loads)) {
        tensor_memory::wait_loads(words);
      }
      if (!is(TensorDefect::arrive_before_loads)) {
        give_back_sums();
      }
      store(tile, words);
    }
  }

  TH_DEVICE void give_back(tensor_memory::Columns place) const {
    if (is(TensorDefect::never_freed)) {
      return;
    }
    if (is(TensorDefect::freed_in_another_size)) {
      tensor_memory::deallocate<group, 64>(place);
      return;
    }
    tensor_memory::deallocate<group, tensor_allocated>(place);
    if (is(TensorDefect::freed_twice)) {
      tensor_memory::deallocate<group, tensor_allocated>(place);
    }
  }
};

TH_KERNEL(192, 1) tensor_ring(TH_GRID_CONSTANT const TensorRingParams params) {
  const TensorRingKernel kernel{params};
  const tensor_memory::Columns place = kernel.prepare();
  const u32 warp = warp::index();
  if (warp < 4) {
    if (!kernel.is(TensorDefect::nobody_waits)) {
      kernel.finish(place);
    }
  } else if (warp == 4) {
    kernel.load();
  } else if (warp::elect() || kernel.is(TensorDefect::not_elected)) {
    kernel.multiply(place);
  }
  tensor_memory::before_barrier();
  if (!kernel.is(TensorDefect::freed_while_loaded)) {
    block::sync();
  }
  tensor_memory::after_barrier();
  if (warp == 5) {
    warp::sync();
    kernel.give_back(place);
  }
}

}  // namespace planted
