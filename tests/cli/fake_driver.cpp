// A libcuda.so.1 as on a machine without a GPU: it tells FAKE_VERSION, and every other function fails.
#include <string_view>

#include "runtime/driver_api.hpp"

#define THRESHER_FAKE(member, function, symbol)             \
  extern "C" int fake_##member(int* first) __asm__(symbol); \
  int fake_##member(int* first) {                           \
    if (std::string_view(symbol) == "cuDriverGetVersion") { \
      *first = FAKE_VERSION;                                \
      return CUDA_SUCCESS;                                  \
    }                                                       \
    return CUDA_ERROR_NO_DEVICE;                            \
  }
THRESHER_DRIVER_FUNCTIONS(THRESHER_FAKE)
