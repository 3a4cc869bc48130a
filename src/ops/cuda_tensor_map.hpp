#pragma once
/// A kernel's description of a tensor map, encoded by the driver.
#include "machine/tensor_map.hpp"
#include "runtime/driver.hpp"

namespace thresher::ops {

/// `description` is of memory of the GPU whose context is current. Throws Error(invalid_argument) with the values when
/// the copy engine cannot address it.
machine::TensorMap encode_for_gpu(const machine::TensorMapDescription& description,
                                  const runtime::ContextGuard& current);

}  // namespace thresher::ops
