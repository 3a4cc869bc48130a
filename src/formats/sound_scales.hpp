#pragma once
/// Checks that scales are valid numbers; invalid scales of any expert are rejected.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/checkpoint.hpp"

namespace thresher::formats {

/// "[2, 1]": the position of element `at` in a row-major tensor of that shape.
[[nodiscard]] std::string place(std::size_t at, const std::vector<std::int64_t>& shape);

/// All functions throw Error(invalid_argument) naming `scales` and the position of the first invalid one. Per-row and
/// per-block scales must be finite; 0 is allowed, as for zeros.
void check_fp8_scales(const LocatedTensor& scales, std::span<const float> values);
/// The same for e4m3 scales, of which one code is NaN with either sign.
void check_e4m3_scales(const LocatedTensor& scales, std::span<const std::byte> codes);
/// Per-tensor scales must be finite and above 0.
void check_global_scales(const LocatedTensor& scales, std::span<const float> values);

}  // namespace thresher::formats
