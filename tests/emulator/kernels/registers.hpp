#pragma once
// One loader warpgroup gives registers to four math warpgroups: 640 threads.
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
};

struct RegisterParams {
  RegisterDefect defect;
};

TH_KERNEL(640, 1) hand_over(TH_GRID_CONSTANT const RegisterParams params) {
  const auto is = [&](RegisterDefect wanted) { return params.defect == wanted; };
  if (warp::group_index() == 4) {
    debug::role("load");
    if (!is(RegisterDefect::nobody_gives) && !(is(RegisterDefect::one_warp_keeps) && warp::index() == 18)) {
      registers::decrease<24>();
    }
    return;
  }
  debug::role("math", warp::group_index());
  if (is(RegisterDefect::beyond_pool)) {
    registers::increase<120>();
  } else if (is(RegisterDefect::increase_that_lowers)) {
    registers::increase<64>();
  } else if (!is(RegisterDefect::divergent_warp) || warp::lane() < 16) {
    registers::increase<112>();
  }
}

}  // namespace planted
