#pragma once
/// Attention's kernels as functions of the host.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::attention {

/// Those that are chosen by default for direct logits, in fp16 and bf16.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::attention
