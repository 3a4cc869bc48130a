#pragma once
/// Whether a kernel on tcgen05 can be compiled and run at all, whatever its operands.
#include <cstdint>
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::strategies::dual_gemm {

/// Of products with `k` along K, in slots of `slot_k`: one sentence with the number and the limit for each thing that
/// stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> tensor_infeasible_reasons(const pipeline::TensorShape& shape, std::int64_t k,
                                                                 std::int64_t slot_k, const DeviceSpec& device);

}  // namespace thresher::strategies::dual_gemm
