#pragma once
/// The 128 bytes that describe a tensor to the TMA, and the description they are made from.
#include "machine/types.hpp"

namespace thresher::machine {

/// Opaque. On the GPU it is written by cuTensorMapEncodeTiled; in the emulator it is a decoded TensorMapDescription.
/// Part of a kernel's parameter struct, which is a grid constant.
struct alignas(64) TensorMap {
  u64 opaque[16];
};

/// The permutation of 16-byte chunks of shared memory inside 8 rows, so that column accesses use different banks.
/// Address bits [4, 4+n) are XORed with bits [7, 7+n), n = 0, 1, 2, 3. Tiles start at multiples of 128·2^n bytes.
enum class Swizzle : u8 { none, b32, b64, b128 };

/// The size of L2 promotion: the bytes around a requested one that are loaded to L2 with it.
enum class Promotion : u8 { b128, b256 };

enum class ElementType : u8 { uint8, uint16, uint32, fp16, bf16, fp32 };

/// Dimension 0 is the contiguous one. Legal: rank 1…5; base 16-byte aligned; strides multiples of 16 below 2^40; box
/// extents 1…256, box[0]·element bytes a multiple of 16 and at most the swizzle's span. Out-of-bounds elements read as
/// zero and are not written.
struct TensorMapDescription {
  u64 address = 0;
  ElementType element = ElementType::uint8;
  Swizzle swizzle = Swizzle::none;
  Promotion promotion = Promotion::b256;
  u32 rank = 0;
  u64 extent[5] = {};        ///< elements
  u64 stride_bytes[5] = {};  ///< [0] is unused: the element's size
  u32 box[5] = {};           ///< elements
};

TH_DEVICE constexpr u32 element_bytes(ElementType type) {
  return type == ElementType::uint8 ? 1 : type == ElementType::uint32 || type == ElementType::fp32 ? 4 : 2;
}

TH_DEVICE constexpr u32 swizzle_span_bytes(Swizzle swizzle) { return 16U << static_cast<u32>(swizzle); }

}  // namespace thresher::machine
