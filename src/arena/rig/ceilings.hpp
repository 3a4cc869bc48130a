#pragma once
/// What a machine can do at best.
#include <string>

#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// What the machine can do at best, for floors; 0 where it is not known.
struct Ceilings {
  double peak_operations_per_s = 0;       ///< of the matrix unit at the highest clock, from the data sheet
  double sustained_operations_per_s = 0;  ///< measured on the day
  double bytes_per_s = 0;                 ///< of memory, measured
  std::string method;                     ///< how these were found
  double fast_rate = 1;                   ///< how many times as fast is the matrix unit of numerics `fast`
  /// What `operations_per_s` is for a contestant of these numerics.
  [[nodiscard]] double rate(double operations_per_s, Numerics numerics) const noexcept {
    return numerics == Numerics::fast ? fast_rate * operations_per_s : operations_per_s;
  }
};

}  // namespace thresher::arena
