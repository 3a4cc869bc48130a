// The driver's functions that the recording driver does not stand in for: they fail. Apart from the others, because
// here they have no type.
#include "runtime/driver_api.hpp"

#define THRESHER_FAILS(member, function, symbol)                         \
  extern "C" __attribute__((weak)) int fails_##member() __asm__(symbol); \
  int fails_##member() { return CUDA_ERROR_NOT_SUPPORTED; }
THRESHER_DRIVER_FUNCTIONS(THRESHER_FAILS)
