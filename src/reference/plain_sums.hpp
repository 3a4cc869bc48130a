#pragma once
/// What a plain kernel does, by which tolerances are gauged.
#include "reference/products.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

struct PlainSums {
  Accumulation accumulation = Accumulation::float32;
  bool is_folded = false;  ///< operands are those of numerics `fast` (reference/fold.hpp)

  /// Integers whose sums float32 holds may not be held by these.
  [[nodiscard]] bool is_short() const noexcept {
    return accumulation == Accumulation::float14_truncated || accumulation == Accumulation::float14_promoted;
  }
};

/// Of operands in these formats, made on such a device by a kernel of such numerics. FP8 on a GPU is summed as Hopper
/// sums it, whose sums are the shortest: `exact` adds those of 128 along K in float32, `fast` does not.
[[nodiscard]] PlainSums plain_sums(Format a, Format b, Numerics numerics, DeviceKind device) noexcept;

}  // namespace thresher::reference
