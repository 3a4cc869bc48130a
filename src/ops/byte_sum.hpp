#pragma once
/// Sums over bytes, which find damaged weights. They do not protect against forgery.
#include <cstddef>
#include <span>

#include "strategies/word_sum/params.hpp"

namespace thresher::ops {

using strategies::word_sum::WordSums;

/// The sums over memory of the host. Zeros fill up the last word.
[[nodiscard]] WordSums byte_sums(std::span<const std::byte> bytes);
/// The same for memory of a GPU, which must not change meanwhile. It runs in the default stream and waits for it.
[[nodiscard]] WordSums byte_sums_on_gpu(std::span<const std::byte> bytes, int ordinal);

}  // namespace thresher::ops
