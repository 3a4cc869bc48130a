#pragma once
/// The entry point: instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
#include "kernels/dual_gemm/operation.hpp"
#include "pipeline/skeleton.hpp"

namespace thresher::kernels::dual_gemm {

template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), 1)
kernel(TH_GRID_CONSTANT const Params params) {
  pipeline::run(Operation<config>(params));
}

}  // namespace thresher::kernels::dual_gemm
