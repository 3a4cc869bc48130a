// Every function of the driver that Thresher asks for, each of which says success and does nothing. fake_driver.cpp has
// those that do something.
#include "runtime/driver_api.hpp"

#define THRESHER_STUB(member, function, symbol)                                   \
  extern "C" __attribute__((weak)) CUresult thresher_fake_##member() __asm__(symbol); \
  CUresult thresher_fake_##member() { return CUDA_SUCCESS; }
THRESHER_DRIVER_FUNCTIONS(THRESHER_STUB)
#undef THRESHER_STUB
