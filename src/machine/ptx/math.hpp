#pragma once
/// CUDA's mathematics library, which NVRTC brings along.
#include "machine/math.hpp"

namespace thresher::machine::math {

TH_DEVICE float exp(float x) { return ::expf(x); }
TH_DEVICE double exp(double x) { return ::exp(x); }
TH_DEVICE float tanh(float x) { return ::tanhf(x); }
TH_DEVICE double tanh(double x) { return ::tanh(x); }
TH_DEVICE bool is_finite(float x) { return (__float_as_uint(x) & 0x7F800000U) != 0x7F800000U; }

}  // namespace thresher::machine::math
