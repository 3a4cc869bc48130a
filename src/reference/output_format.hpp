#pragma once
/// The output formats for the tolerance: fp16, bf16 and fp32. A quantized output counts as fp32, the format of its
/// values before they are divided by scales; `reference/quantized_output.hpp` has the rest.
#include "thresher/tensor.hpp"

namespace thresher::reference {

/// `value` rounded once to the format, to nearest even; overflow gives Inf. Throws Error(unsupported) for a format that
/// is no output format; so do all functions here.
[[nodiscard]] double round_to(Format format, double value);

/// Distance between neighbours of the format at |value|, subnormals included; the largest distance beyond the range.
[[nodiscard]] double ulp(Format format, double value);

/// The magnitude from which values round to Inf.
[[nodiscard]] double overflow_threshold(Format format);

}  // namespace thresher::reference
