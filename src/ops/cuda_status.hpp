#pragma once
/// Reading what kernels left of a call's status (strategies/status_words.hpp).
#include <cstddef>
#include <cstdint>

#include "thresher/device.hpp"

namespace thresher::ops {

/// All flags of the status at the beginning of a workspace of so many bytes, once `stream` has come so far.
[[nodiscard]] std::uint32_t status_flags(Stream stream, const void* workspace, std::size_t workspace_bytes,
                                         int ordinal);

}  // namespace thresher::ops
