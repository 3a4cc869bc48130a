#pragma once
/// The output formats as the tolerance sees them: fp16, bf16 and fp32; one that is requantised as fp32, which its
/// values are before they meet their scales (reference/requantised.hpp has the rest).
#include "thresher/tensor.hpp"

namespace thresher::reference {

/// `value` rounded once to the format, to nearest even; overflow gives Inf. Throws Error(unsupported) for a format that
/// is no output format, as all functions here do.
[[nodiscard]] double round_to(Format format, double value);

/// Distance between neighbours of the format at |value|, subnormals included; the largest one beyond the range.
[[nodiscard]] double ulp(Format format, double value);

/// The magnitude from which values round to Inf.
[[nodiscard]] double overflow_threshold(Format format);

}  // namespace thresher::reference
