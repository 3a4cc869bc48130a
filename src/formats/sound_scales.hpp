#pragma once
/// Scales that make numbers of what they multiply: all others are refused, whichever expert they are of.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/checkpoint.hpp"

namespace thresher::formats {

/// "[2, 1]": where element `at` of a row-major tensor of that shape is.
[[nodiscard]] std::string place(std::size_t at, const std::vector<std::int64_t>& shape);

/// All throw Error(invalid_argument) naming `scales` and the place of the first that is not sound. Of rows and blocks,
/// which may be 0 as those of zeros are: finite ones.
void check_fp8_scales(const LocatedTensor& scales, std::span<const float> values);
/// The same of codes in e4m3, of which one is NaN with either sign.
void check_e4m3_scales(const LocatedTensor& scales, std::span<const std::byte> codes);
/// Of whole matrices: finite and above 0.
void check_global_scales(const LocatedTensor& scales, std::span<const float> values);

}  // namespace thresher::formats
