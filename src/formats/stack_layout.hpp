#pragma once
/// The layout of the matrices in a tensor of three dimensions.
#include <string_view>

#include "formats/safetensors.hpp"

namespace thresher::formats {

/// [E, rows, K], as products read it; [E, K, rows], as some models multiply it; or the file does not say which.
enum class StackLayout { rows_first, k_first, unknown };

/// The layout of the file's tensor `stack`. The evidence is the fused gate and up together with the down projection, or
/// the router, whose K is the layer's. A bias, which has the rows, is evidence too.
[[nodiscard]] StackLayout stack_layout(const SafetensorsFile& file, const StoredTensor& stack);

}  // namespace thresher::formats
