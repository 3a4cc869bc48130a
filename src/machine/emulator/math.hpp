#pragma once
/// The host's mathematics library.
#include <cmath>

#include "machine/math.hpp"

namespace thresher::machine::math {

TH_DEVICE float exp(float x) { return std::exp(x); }
TH_DEVICE double exp(double x) { return std::exp(x); }
TH_DEVICE float tanh(float x) { return std::tanh(x); }
TH_DEVICE double tanh(double x) { return std::tanh(x); }
TH_DEVICE bool is_finite(float x) { return std::isfinite(x); }

}  // namespace thresher::machine::math
