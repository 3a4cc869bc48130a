#pragma once
/// The entry point: instantiated for each Config, by NVRTC for Blackwell and by the host's compiler for the emulator.
#include "strategies/grouped_gemm/tcgen05_plain/device/operation.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), 1)
kernel(TH_GRID_CONSTANT const PlainParams params) {
  pipeline::run_grouped_tensor(Operation<config>(params));
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
