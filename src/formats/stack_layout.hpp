#pragma once
/// How the matrices of a tensor of three dimensions lie in it.
#include <string_view>

#include "formats/safetensors.hpp"

namespace thresher::formats {

/// [E, rows, K], as products read it; [E, K, rows], as some models multiply it; or nothing in the file says which.
enum class StackLayout { rows_first, k_first, unknown };

/// What the file says of its tensor `stack`: by the fused gate and up and the down projection beside each other, by the
/// router, whose K is the layer's, or by a bias, which has the rows.
[[nodiscard]] StackLayout stack_layout(const SafetensorsFile& file, const StoredTensor& stack);

}  // namespace thresher::formats
