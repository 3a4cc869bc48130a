#pragma once
#include <cmath>

namespace thresher::testing {

inline double silu(double x) { return x / (1 + std::exp(-x)); }

}  // namespace thresher::testing
