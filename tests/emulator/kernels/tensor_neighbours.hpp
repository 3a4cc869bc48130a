#pragma once
// Two blocks of a cluster that may share a multiprocessor: each takes columns, meets the other while it holds them, and
// gives them back. Each `NeighbourDefect` is one line that differs.
#include "machine/machine.hpp"
#include "machine/tensor_memory.hpp"

namespace planted {

using namespace thresher::machine;

enum class NeighbourDefect {
  none,
  takes_all_columns,  // the two together want more than a multiprocessor has
  keeps_allocation,   // allocation is not given up before the two meet
};

struct NeighboursParams {
  Global<u32> places;  // where each block's columns were
  NeighbourDefect defect;
};

struct NeighboursKernel {
  const NeighboursParams& params;
  static constexpr u32 columns = 256;

  TH_DEVICE static Shared<u32> place() { return Shared<u32>{launch::shared_memory().address}; }

  TH_DEVICE tensor_memory::Columns take() const {
    if (params.defect == NeighbourDefect::takes_all_columns) {
      tensor_memory::allocate<Group::block, tensor_memory::all_columns>(place());
    } else {
      tensor_memory::allocate<Group::block, columns>(place());
    }
    if (params.defect != NeighbourDefect::keeps_allocation) {
      tensor_memory::give_up_allocation<Group::block>();
    }
    warp::sync();
    return {place().load()};
  }

  TH_DEVICE void run() const {
    const tensor_memory::Columns taken = take();
    cluster::sync();
    if (warp::elect()) {
      params.places.store(launch::block_index().x, taken.address);
    }
    if (params.defect == NeighbourDefect::takes_all_columns) {
      tensor_memory::deallocate<Group::block, tensor_memory::all_columns>(taken);
    } else {
      tensor_memory::deallocate<Group::block, columns>(taken);
    }
  }
};

TH_KERNEL(32, 1) tensor_neighbours(TH_GRID_CONSTANT const NeighboursParams params) { NeighboursKernel{params}.run(); }

}  // namespace planted
