#pragma once
/// The entry point: instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
#include "pipeline/wgmma_skeleton.hpp"
#include "strategies/dual_gemm/packed/device/operation.hpp"

namespace thresher::strategies::dual_gemm::packed {

template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), config.blocks_resident)
kernel(TH_GRID_CONSTANT const Params params) {
  pipeline::run(Operation<config>(params));
}

}  // namespace thresher::strategies::dual_gemm::packed
