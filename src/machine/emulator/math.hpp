#pragma once
/// The host's mathematics library.
#include <cmath>

#include "machine/math.hpp"

namespace thresher::machine::math {

inline float exp(float x) { return std::exp(x); }
inline double exp(double x) { return std::exp(x); }
inline float tanh(float x) { return std::tanh(x); }
inline double tanh(double x) { return std::tanh(x); }
inline bool is_finite(float x) { return std::isfinite(x); }

}  // namespace thresher::machine::math
