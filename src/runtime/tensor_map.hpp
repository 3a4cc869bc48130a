#pragma once
/// Tensor maps: the TMA's description of a tensor in global memory (compute capability 9.0 and up).
#include <array>
#include <cstdint>
#include <span>

#include "runtime/driver.hpp"

namespace thresher::runtime {

/// Passed by value as a __grid_constant__ kernel parameter.
struct alignas(64) TensorMap {
  std::array<std::uint64_t, 16> opaque{};
};

enum class TensorElement : std::uint8_t { uint8, uint16, uint32, fp16, bf16, fp32 };
enum class TensorSwizzle : std::uint8_t { none, bytes32, bytes64, bytes128 };
enum class TensorPromotion : std::uint8_t { none, bytes64, bytes128, bytes256 };

/// A tiled view; dimension 0 is the contiguous one. `byte_strides[i]` is the distance between two neighbours along
/// dimension i + 1, a multiple of 16 bytes. `box` is the tile that one copy moves. Out-of-bounds elements read as zero.
struct TiledView {
  const void* data = nullptr;  ///< GPU memory, aligned to 16 bytes
  TensorElement element = TensorElement::uint8;
  std::span<const std::uint64_t> extents;
  std::span<const std::uint64_t> byte_strides;
  std::span<const std::uint32_t> box;
  TensorSwizzle swizzle = TensorSwizzle::none;
  TensorPromotion promotion = TensorPromotion::bytes256;
};

/// Throws Error(invalid_argument) with the values when the TMA cannot address the view.
TensorMap encode_tiled(const TiledView& view);
/// The same for memory of the GPU whose context is current: the driver is not asked for the device of the pointer.
TensorMap encode_tiled(const TiledView& view, const ContextGuard& current);

}  // namespace thresher::runtime
