#include "reference/plain_sums.hpp"

namespace thresher::reference {

PlainSums plain_sums(Format a, Format b, Numerics numerics, DeviceKind device) noexcept {
  if (numerics == Numerics::fast && b == Format::nvfp4) {
    return {Accumulation::float14_truncated, true};
  }
  if (device == DeviceKind::cpu) {
    return {Accumulation::float32, false};
  }
  const auto is_fp8 = [](Format format) { return format_traits(format).product_format == Format::fp8_e4m3; };
  if (is_fp8(a) && is_fp8(b)) {
    return {numerics == Numerics::fast ? Accumulation::float14_truncated : Accumulation::float14_promoted, false};
  }
  return {Accumulation::float32_truncated, false};
}

}  // namespace thresher::reference
