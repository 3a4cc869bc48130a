#pragma once
// One loader warpgroup gives registers to four math warpgroups, which multiply: 640 threads.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class RegisterDefect {
  none,
  beyond_pool,     // 24 + 4·120 registers a thread, launched with 5·96: hangs a real multiprocessor
  nobody_gives,    // the loader keeps its registers
  one_warp_keeps,  // a warp of the loader does not give
  divergent_warp,  // half of a warp asks
  increase_that_lowers,
  one_warp_gives,             // and the others of the loader's warpgroup do not; nobody asks for more
  one_warpgroup_does_not_ask  // but multiplies as the others do
};

struct RegisterParams {
  RegisterDefect defect;
};

inline constexpr u32 register_shared_bytes = 64 * 128;

/// Zeros times zeros by one warpgroup.
TH_DEVICE void multiply_once() {
  const auto zeros = wgmma::descriptor<Swizzle::b128>(launch::shared_memory(), 0, 1024);
  Accumulators<8> sums;
  wgmma::fence();
  wgmma::multiply<Half>(sums, zeros, zeros, false);
  wgmma::commit();
  wgmma::wait<0>();
}

TH_KERNEL(640, 1) reallocation(TH_GRID_CONSTANT const RegisterParams params) {
  const auto is = [&](RegisterDefect wanted) { return params.defect == wanted; };
  for (u32 i = launch::thread_index(); i < register_shared_bytes / 4; i += 640) {
    launch::shared_memory().as<u32>().store(i, 0);
  }
  fence::async_shared();
  block::sync();
  if (warp::group_index() == 4) {
    debug::role("load");
    if (is(RegisterDefect::one_warp_gives)) {
      if (warp::index() == 18) {
        registers::decrease<24>();
      }
    } else if (!is(RegisterDefect::nobody_gives) && !(is(RegisterDefect::one_warp_keeps) && warp::index() == 18)) {
      registers::decrease<24>();
    }
    return;
  }
  debug::role("math", warp::group_index());
  if (is(RegisterDefect::beyond_pool)) {
    registers::increase<120>();
  } else if (is(RegisterDefect::increase_that_lowers)) {
    registers::increase<64>();
  } else if (is(RegisterDefect::one_warp_gives)) {
    return;
  } else if ((!is(RegisterDefect::divergent_warp) || warp::lane() < 16) &&
             !(is(RegisterDefect::one_warpgroup_does_not_ask) && warp::group_index() == 2)) {
    registers::increase<112>();
  }
  multiply_once();
}

}  // namespace planted
