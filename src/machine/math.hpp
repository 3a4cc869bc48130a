#pragma once
/// Functions of the mathematics library, within a few units in the last place: for definitions and for kernels that are
/// not bound by arithmetic. The fast ones are in machine/numbers.hpp.
#include "machine/types.hpp"

namespace thresher::machine::math {

TH_DEVICE float exp(float x);
TH_DEVICE double exp(double x);
TH_DEVICE float tanh(float x);
TH_DEVICE double tanh(double x);
TH_DEVICE bool is_finite(float x);

}  // namespace thresher::machine::math

#if TH_GPU
#include "machine/ptx/math.hpp"
#else
#include "machine/emulator/math.hpp"
#endif
