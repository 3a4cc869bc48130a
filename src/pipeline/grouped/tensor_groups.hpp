#pragma once
/// What shared memory a grouped kernel takes whose sums lie in tensor memory.
#include "pipeline/grouped/groups.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::pipeline {

/// The directory lies behind all that a shape knows.
TH_DEVICE constexpr int directory_offset(const TensorShape& shape) { return (used_bytes(shape) + 15) / 16 * 16; }
TH_DEVICE constexpr int grouped_shared_bytes(const TensorShape& shape, u32 groups) {
  const int needed = directory_offset(shape) + static_cast<int>(directory_bytes(groups));
  return needed > shared_bytes(shape) ? needed : shared_bytes(shape);
}

}  // namespace thresher::pipeline
