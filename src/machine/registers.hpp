#pragma once
/// Register reallocation (`setmaxnreg`) between warpgroups. The pool is the launch's registers × threads. The sum over
/// warpgroups after all changes must fit, or the increasing ones wait forever.
#include "machine/types.hpp"

namespace thresher::machine::registers {

/// All threads of a warpgroup call it; `count` is a multiple of 8, 24…256. increase blocks until the pool has enough.
template <int count>
TH_DEVICE void increase(Site site = here());
template <int count>
TH_DEVICE void decrease(Site site = here());

}  // namespace thresher::machine::registers

#if TH_GPU
#include "machine/ptx/registers.hpp"
#else
#include "machine/emulator/registers.hpp"
#endif
