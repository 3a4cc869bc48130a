#pragma once
/// Conversion from and to DLPack. Needs <dlpack/dlpack.h>, version 0.6 or later; not part of thresher/thresher.hpp.
#include <dlpack/dlpack.h>

#include <memory>
#include <string_view>

#include "thresher/tensor.hpp"

namespace thresher {

/// A view of a DLPack tensor of at most max_rank dimensions. Its type is float32, float16, bfloat16, float8_e4m3fn
/// (type code 10 of DLPack 1.1), int32 or uint8. It is in CPU memory (pinned included) or CUDA memory (managed
/// included). The view borrows the memory. Throws Error(unsupported or invalid_argument) naming `role` and what is
/// wrong with it.
Tensor from_dlpack(const DLTensor& tensor, std::string_view role = "tensor");

/// An NVFP4 view [rows, k] from its parts. `values` is uint8 [rows, k/2], two e2m1 values per byte, low nibble first.
/// `scales` is uint8 or float8_e4m3fn: [rows, k/16] for ScaleLayout::row_major, or any contiguous shape with the
/// blocked layout's bytes. `global_scale` is one float32 or null for 1. All are on one device.
Tensor nvfp4_from_dlpack(const DLTensor& values, const DLTensor& scales, ScaleLayout layout,
                         const DLTensor* global_scale = nullptr, std::string_view role = "tensor");

/// A DLPack tensor over the memory of `tensor`, in any format except nvfp4. Strides are always given. The memory must
/// stay valid until the consumer calls the deleter; `owner`, if given, is kept alive until then.
DLManagedTensor* to_dlpack(const Tensor& tensor, std::shared_ptr<const void> owner = nullptr);

/// The parts of an NVFP4 tensor as DLPack tensors, each with its own deleter.
struct Nvfp4Dlpack {
  DLManagedTensor* values = nullptr;        ///< uint8 [rows, k/2]
  DLManagedTensor* scales = nullptr;        ///< uint8 [rows, k/16], flat for the blocked layout
  DLManagedTensor* global_scale = nullptr;  ///< float32 [1], null if the tensor has none
};
Nvfp4Dlpack nvfp4_to_dlpack(const Tensor& tensor, const std::shared_ptr<const void>& owner = nullptr);

}  // namespace thresher
