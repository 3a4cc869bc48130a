#pragma once
/// The upper limits of a machine.
#include <string>

#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// The machine's upper limits, for floors; 0 where unknown.
struct Ceilings {
  double peak_operations_per_s = 0;       ///< of the tensor cores or the CPU's widest unit, at the highest clock
  double sustained_operations_per_s = 0;  ///< measured today
  double bytes_per_s = 0;                 ///< of memory, measured
  std::string method;                     ///< how these were determined
  double fast_rate = 1;                   ///< the speed of the tensor cores with numerics `fast`, relative to `exact`
  /// Scales `operations_per_s` for a contestant of these numerics.
  [[nodiscard]] double rate(double operations_per_s, Numerics numerics) const noexcept {
    return numerics == Numerics::fast ? fast_rate * operations_per_s : operations_per_s;
  }
};

}  // namespace thresher::arena
