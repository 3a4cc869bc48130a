#pragma once
/// The kernels that are compiled into the library for the CPU, thread by thread and checked (machine/emulator).
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies {

namespace append {
/// Every format, page format and pairing.
std::vector<CompiledIn> compiled_in();
}  // namespace append

namespace attention {
/// Those that are chosen by default for direct logits, in fp16 and bf16.
std::vector<CompiledIn> compiled_in();
}  // namespace attention

namespace gemm::fused {
/// Small and default configurations, profiled ones, and what the planner chooses for the first suite.
std::vector<CompiledIn> compiled_in();
}  // namespace gemm::fused

namespace gemm::tcgen05 {
/// Packing, and preparation and products of the small configurations.
std::vector<CompiledIn> compiled_in();
}  // namespace gemm::tcgen05

namespace gemm::wgmma {
/// The products of the small configurations, gathering, and the quantization of outputs.
std::vector<CompiledIn> compiled_in();
}  // namespace gemm::wgmma

namespace gemm::wgmma_dequant {
/// Packing, preparing tokens, and the products of the small configurations and of the dense default ones.
std::vector<CompiledIn> compiled_in();
}  // namespace gemm::wgmma_dequant

namespace moe_layer {
std::vector<CompiledIn> compiled_in();
}  // namespace moe_layer

}  // namespace thresher::strategies
