#pragma once
// A loader warp brings tiles of 16 rows × 64 columns by TMA, the last one ragged, through a ring of two; a reader warp
// adds up each column: out[column] = sum over all rows. A box brings its full bytes wherever it lies: rows beyond the
// tensor are zeros. Each `Defect` differs at the ragged tile alone.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class RaggedDefect {
  none,
  announces_rows_that_exist,  // the bytes of the rows inside the tensor
  announces_a_row_less,       // one row less than the box
  announces_a_row_more,
};

struct RaggedParams {
  TensorMap in;     // boxes of 64 × 16
  Global<u32> out;  // [64]
  u32 rows;
  RaggedDefect defect;
};

inline constexpr u32 ragged_box_rows = 16;
inline constexpr u32 ragged_row_bytes = 64 * 4;
inline constexpr u32 ragged_slot_bytes = ragged_box_rows * ragged_row_bytes;
inline constexpr u32 ragged_stages = 2;
inline constexpr u32 ragged_shared_bytes = ragged_stages * ragged_slot_bytes + 64;

struct RaggedKernel {
  const RaggedParams& params;

  TH_DEVICE bool is(RaggedDefect wanted) const { return params.defect == wanted; }
  TH_DEVICE u32 tiles() const { return (params.rows + ragged_box_rows - 1) / ragged_box_rows; }
  static TH_DEVICE Shared<u8> slot(u32 index) {
    return launch::shared_memory().offset_bytes(index * ragged_slot_bytes);
  }
  static TH_DEVICE Barrier full(u32 index) {
    return Barrier{launch::shared_memory().offset_bytes(ragged_stages * ragged_slot_bytes).address}.offset(index);
  }
  static TH_DEVICE Barrier empty(u32 index) { return full(ragged_stages + index); }

  TH_DEVICE void init() const {
    if (launch::thread_index() == 0) {
      for (u32 s = 0; s < ragged_stages; ++s) {
        full(s).init(1);
        empty(s).init(1);
        debug::name_barrier(full(s), "full", s);
        debug::name_barrier(empty(s), "empty", s);
      }
      fence::barrier_init();
    }
    block::sync();
  }

  TH_DEVICE u32 announced_bytes(u32 tile) const {
    const u32 existing = params.rows - tile * ragged_box_rows;
    if (existing >= ragged_box_rows) {
      return ragged_slot_bytes;
    }
    return is(RaggedDefect::announces_rows_that_exist) ? existing * ragged_row_bytes
           : is(RaggedDefect::announces_a_row_less)    ? ragged_slot_bytes - ragged_row_bytes
           : is(RaggedDefect::announces_a_row_more)    ? ragged_slot_bytes + ragged_row_bytes
                                                       : ragged_slot_bytes;
  }

  TH_DEVICE void load() const {
    debug::role("load");
    Phase phase{1};
    for (u32 tile = 0; tile < tiles(); ++tile) {
      const u32 s = tile % ragged_stages;
      empty(s).wait(phase);
      if (warp::elect()) {
        full(s).arrive_expect_bytes(announced_bytes(tile));
        tma::load(slot(s), params.in, full(s), At{0, static_cast<i32>(tile * ragged_box_rows)});
      }
      warp::sync();
      if (s + 1 == ragged_stages) {
        phase.flip();
      }
    }
  }

  TH_DEVICE void add() const {
    debug::role("add");
    u32 sums[2] = {};
    Phase phase{0};
    for (u32 tile = 0; tile < tiles(); ++tile) {
      const u32 s = tile % ragged_stages;
      full(s).wait(phase);
      for (u32 row = 0; row < ragged_box_rows; ++row) {
        for (u32 half = 0; half < 2; ++half) {
          sums[half] += slot(s).as<u32>().load(row * 64 + half * 32 + warp::lane());
        }
      }
      warp::sync();
      if (warp::elect()) {
        empty(s).arrive();
      }
      if (s + 1 == ragged_stages) {
        phase.flip();
      }
    }
    for (u32 half = 0; half < 2; ++half) {
      params.out.store(half * 32 + warp::lane(), sums[half]);
    }
  }
};

TH_KERNEL(64, 1) ragged(TH_GRID_CONSTANT const RaggedParams params) {
  const RaggedKernel kernel{params};
  kernel.init();
  if (warp::index() == 0) {
    kernel.load();
  } else {
    kernel.add();
  }
}

}  // namespace planted
