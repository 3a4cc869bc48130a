#include "runtime/tensor_map.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "runtime/driver.hpp"
#include "runtime/driver_api.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

CUtensorMapDataType data_type(TensorElement element) {
  switch (element) {
    case TensorElement::uint8: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case TensorElement::uint16: return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case TensorElement::uint32: return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case TensorElement::fp16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case TensorElement::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case TensorElement::fp32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
  throw Error(ErrorCode::internal, "unknown tensor-map element");
}

CUtensorMapSwizzle swizzle_mode(TensorSwizzle swizzle) {
  switch (swizzle) {
    case TensorSwizzle::none: return CU_TENSOR_MAP_SWIZZLE_NONE;
    case TensorSwizzle::bytes32: return CU_TENSOR_MAP_SWIZZLE_32B;
    case TensorSwizzle::bytes64: return CU_TENSOR_MAP_SWIZZLE_64B;
    case TensorSwizzle::bytes128: return CU_TENSOR_MAP_SWIZZLE_128B;
  }
  throw Error(ErrorCode::internal, "unknown tensor-map swizzle");
}

CUtensorMapL2promotion promotion_mode(TensorPromotion promotion) {
  switch (promotion) {
    case TensorPromotion::none: return CU_TENSOR_MAP_L2_PROMOTION_NONE;
    case TensorPromotion::bytes64: return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
    case TensorPromotion::bytes128: return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    case TensorPromotion::bytes256: return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  }
  throw Error(ErrorCode::internal, "unknown tensor-map promotion");
}

template <class T>
std::string list(std::span<const T> values) {
  std::string text = "[";
  for (const T value : values) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  }
  return text + "]";
}

}  // namespace

TensorMap encode_tiled(const TiledView& view) {
  const DeviceId device = pointer_device(view.data);
  if (device.kind != DeviceKind::cuda) {
    throw Error(ErrorCode::invalid_argument, "a tensor map is wanted for host memory, expected memory of a GPU");
  }
  return encode_tiled(view, ContextGuard(device.ordinal));
}

TensorMap encode_tiled(const TiledView& view, const ContextGuard& /*current*/) {
  constexpr std::size_t max_dimensions = 5;
  const std::size_t rank = view.extents.size();
  if (rank == 0 || rank > max_dimensions || view.box.size() != rank || view.byte_strides.size() != rank - 1) {
    throw Error(ErrorCode::invalid_argument, "a tensor map has " + std::to_string(rank) + " extents, " +
                                                 std::to_string(view.byte_strides.size()) + " strides and a box of " +
                                                 std::to_string(view.box.size()) +
                                                 ", expected 1 to 5 extents, one stride fewer and as many box sides");
  }
  const std::array<cuuint32_t, max_dimensions> element_strides{1, 1, 1, 1, 1};
  std::array<cuuint64_t, max_dimensions> byte_strides{};  // the driver requires an address even without any
  std::copy(view.byte_strides.begin(), view.byte_strides.end(), byte_strides.begin());
  CUtensorMap encoded{};
  const CUresult result = driver().tensor_map_encode_tiled(
      &encoded, data_type(view.element), static_cast<cuuint32_t>(rank), const_cast<void*>(view.data),
      view.extents.data(), byte_strides.data(), view.box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle_mode(view.swizzle), promotion_mode(view.promotion), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error(ErrorCode::invalid_argument,
                "no tensor map for extents " + list(view.extents) + ", byte strides " + list(view.byte_strides) +
                    " and box " + list(view.box) + " at address " +
                    std::to_string(reinterpret_cast<std::uintptr_t>(view.data)) + " (" + describe(result) +
                    "), expected strides and address that are multiples of 16 bytes and a box of at most 256 a side");
  }
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
  return std::bit_cast<TensorMap>(encoded);
}

}  // namespace thresher::runtime
