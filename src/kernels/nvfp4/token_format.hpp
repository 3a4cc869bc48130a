#pragma once
/// What tokens come in.
#include "machine/types.hpp"

namespace thresher::kernels::nvfp4 {

enum class TokenFormat : machine::u8 { fp16, bf16, nvfp4 };

}  // namespace thresher::kernels::nvfp4
