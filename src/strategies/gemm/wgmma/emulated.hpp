#pragma once
/// The kernels on wgmma that are compiled into the library for the CPU, thread by thread and checked
/// (machine/emulator).
#include <span>
#include <vector>

#include "strategies/gemm/wgmma/fused/config.hpp"
#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::gemm {

namespace fused {
/// Profiled kernels, and kernels that leave a part out: clean, but not right.
std::span<const Config> profiled_configs();
/// Small and default configurations, the profiled ones, and what the planner chooses for the first suite.
std::vector<CompiledIn> compiled_in();
}  // namespace fused

namespace wgmma {
/// The products of the small configurations; with those of columns, gathering and the quantization of outputs.
std::vector<CompiledIn> columns_compiled_in();
std::vector<CompiledIn> rows_compiled_in();
}  // namespace wgmma

}  // namespace thresher::strategies::gemm
