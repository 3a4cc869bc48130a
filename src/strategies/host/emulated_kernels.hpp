#pragma once
/// The kernels outside gemm/ that are compiled into the library for the CPU.
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

namespace moe_layer {
std::vector<CompiledIn> compiled_in();
}  // namespace moe_layer

}  // namespace thresher::strategies
