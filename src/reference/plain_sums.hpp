#pragma once
/// The accumulation of a plain kernel, which sets the tolerances.
#include "reference/products.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

struct PlainSums {
  Accumulation accumulation = Accumulation::float32;
  bool is_folded = false;  ///< operands are those of numerics `fast` (reference/fold.hpp)

  /// Sums of integers that are exact in float32 may be inexact here.
  [[nodiscard]] bool is_short() const noexcept {
    return accumulation == Accumulation::float14_truncated || accumulation == Accumulation::float14_promoted;
  }
};

/// The accumulation for operands in these formats, on such a device, by a kernel of such numerics. FP8 on a GPU
/// accumulates as on Hopper, which has the fewest bits: `exact` has FP32 accumulation every 128 along K, `fast` does
/// not.
[[nodiscard]] PlainSums plain_sums(Format a, Format b, Numerics numerics, DeviceKind device) noexcept;

}  // namespace thresher::reference
