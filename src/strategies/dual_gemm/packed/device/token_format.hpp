#pragma once
/// What tokens come in.
#include "machine/types.hpp"

namespace thresher::strategies::dual_gemm::packed {

enum class TokenFormat : machine::u8 { fp16, bf16, nvfp4 };

}  // namespace thresher::strategies::dual_gemm::packed
