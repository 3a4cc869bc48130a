#include "ops/cuda_tensor_map.hpp"

#include <bit>

#include "runtime/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

runtime::TensorElement element(machine::ElementType type) {
  switch (type) {
    case machine::ElementType::uint8: return runtime::TensorElement::uint8;
    case machine::ElementType::uint16: return runtime::TensorElement::uint16;
    case machine::ElementType::uint32: return runtime::TensorElement::uint32;
    case machine::ElementType::fp16: return runtime::TensorElement::fp16;
    case machine::ElementType::bf16: return runtime::TensorElement::bf16;
    case machine::ElementType::fp32: return runtime::TensorElement::fp32;
  }
  throw Error(ErrorCode::internal, "unknown element of a tensor map");
}

runtime::TensorSwizzle swizzle(machine::Swizzle of) {
  switch (of) {
    case machine::Swizzle::none: return runtime::TensorSwizzle::none;
    case machine::Swizzle::b32: return runtime::TensorSwizzle::bytes32;
    case machine::Swizzle::b64: return runtime::TensorSwizzle::bytes64;
    case machine::Swizzle::b128: return runtime::TensorSwizzle::bytes128;
  }
  throw Error(ErrorCode::internal, "unknown swizzle of a tensor map");
}

runtime::TensorPromotion promotion(machine::Promotion of) {
  switch (of) {
    case machine::Promotion::none: return runtime::TensorPromotion::none;
    case machine::Promotion::b64: return runtime::TensorPromotion::bytes64;
    case machine::Promotion::b128: return runtime::TensorPromotion::bytes128;
    case machine::Promotion::b256: return runtime::TensorPromotion::bytes256;
  }
  throw Error(ErrorCode::internal, "unknown promotion of a tensor map");
}

}  // namespace

machine::TensorMap encode_for_gpu(const machine::TensorMapDescription& description,
                                  const runtime::ContextGuard& current) {
  std::array<std::uint64_t, 5> extents{};
  std::array<std::uint64_t, 4> strides{};
  std::array<std::uint32_t, 5> box{};
  for (std::size_t d = 0; d < description.rank; ++d) {
    extents[d] = description.extent[d];
    box[d] = description.box[d];
    if (d > 0) {
      strides[d - 1] = description.stride_bytes[d];
    }
  }
  const runtime::TiledView view{.data = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(description.address)),
                                .element = element(description.element),
                                .extents = {extents.data(), description.rank},
                                .byte_strides = {strides.data(), description.rank - 1},
                                .box = {box.data(), description.rank},
                                .swizzle = swizzle(description.swizzle),
                                .promotion = promotion(description.promotion)};
  return std::bit_cast<machine::TensorMap>(runtime::encode_tiled(view, current));
}

}  // namespace thresher::ops
