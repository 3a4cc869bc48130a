#pragma once
/// Sums over bytes by which damaged weights are found: of accidents, not of forgeries.
#include <cstddef>
#include <span>

#include "strategies/word_sum/params.hpp"

namespace thresher::ops {

using strategies::word_sum::WordSums;

/// Of the host's memory, whose last word is filled up with zeros.
[[nodiscard]] WordSums byte_sums(std::span<const std::byte> bytes);
/// The same of memory of a GPU, which nobody writes meanwhile: it runs in the default stream, and waits for it.
[[nodiscard]] WordSums byte_sums_on_gpu(std::span<const std::byte> bytes, int ordinal);

}  // namespace thresher::ops
