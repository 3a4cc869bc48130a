#pragma once
/// The entry point: instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
#include "strategies/grouped_gemm/columns/device/operation.hpp"

namespace thresher::strategies::grouped_gemm::columns {

template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), config.blocks_resident)
kernel(TH_GRID_CONSTANT const PlainParams params) {
  pipeline::run_grouped(Operation<config>(params));
}

}  // namespace thresher::strategies::grouped_gemm::columns
