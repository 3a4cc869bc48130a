#pragma once
/// Matrix products of Blackwell's tensor cores: D[m, n] += A[m, k]·B[n, k]ᵀ with operands in shared memory and D in
/// tensor memory, issued by one thread.
///
/// PTX orders the instructions of one thread in two cases: products on the same accumulators with one shape, and a copy
/// of scales before products. It does not order a copy after a product that reads what the copy overwrites, nor loads:
/// those wait for a commit's barrier.
#include "machine/barrier.hpp"
#include "machine/tensor_map.hpp"
#include "machine/tensor_memory.hpp"

namespace thresher::machine::tcgen05 {

/// Formats of the operands; D is float32. 32 bytes of k per instruction: 16, 32 or 64 elements.
enum class Kind : u8 {
  f16,     ///< Half or BFloat16
  f8f6f4,  ///< E4M3
  nvfp4,   ///< e2m1, two per byte, with one UE4M3 scale per 16
};

/// The instruction descriptor: shape and formats.
struct Instruction {
  u32 bits;
  /// The same with `columns` columns of D, a multiple of 8 (16 for a pair).
  TH_DEVICE constexpr Instruction with_columns(u32 columns) const {
    constexpr u32 field = 0x3FU << 17U;
    return {(bits & ~field) | (columns >> 3U) << 17U};
  }
};

/// D of `rows` (128; of a pair 256: 128 in each block) by `columns` (8 … 256), row r % 128 in lane r % 128 of its
/// block. Kinds without scales also have 64 rows per block. Row r of one block is in lane 32·(r / 16) + r % 16, the
/// lower half of each warp's lanes. For a pair's 128 rows, row r % 64 of a block is in lane r % 64 for the first half
/// of the columns, and 64 lanes further, in the same columns, for the second. Element gives the operands' format if the
/// kind allows several. (PTX ISA, tcgen05: instruction descriptor, data path layouts.)
template <Kind kind, typename Element = void>
TH_DEVICE constexpr Instruction instruction(u32 rows, u32 columns) {
  if constexpr (kind == Kind::nvfp4) {
    constexpr u32 e2m1 = 1;
    return {e2m1 << 7U | e2m1 << 10U | (columns >> 3U) << 17U | (rows >> 7U) << 27U};
  } else {
    static_assert(kind == Kind::f8f6f4 ? is_same<Element, E4M3> : is_same<Element, Half> || is_same<Element, BFloat16>,
                  "this kind has no such element");
    constexpr u32 format = is_same<Element, BFloat16> ? 1 : 0;  // fp16 and e4m3: 0
    constexpr u32 sums_float32 = 1;
    return {sums_float32 << 4U | format << 7U | format << 10U | (columns >> 3U) << 17U | (rows >> 4U) << 24U};
  }
}

/// A typed matrix descriptor, K-major: rows of 16 (Swizzle::none), 32, 64 or 128 bytes, 8 rows per atom. In a pair the
/// same descriptor is applied in both blocks.
template <Swizzle swizzle>
struct Descriptor {
  u64 bits;
  /// The same operand `bytes` (a multiple of 16) further along k, within a swizzle atom.
  TH_DEVICE constexpr Descriptor advance(u32 bytes) const { return {bits + (bytes >> 4U)}; }
};

/// stride_bytes is the distance between groups of 8 rows. leading_bytes, without a swizzle, is the distance between
/// cores of 16 bytes along k. (PTX ISA, tcgen05: shared memory descriptor.)
template <Swizzle swizzle>
TH_DEVICE constexpr Descriptor<swizzle> descriptor(Shared<u8> start, u32 leading_bytes, u32 stride_bytes) {
  constexpr u64 layout =
      swizzle == Swizzle::none ? 0 : 8 - 2 * static_cast<u64>(swizzle);  // 2: 128 bytes, 4: 64, 6: 32
  constexpr u64 version = 1;
  return {((start.address & 0x3FFFFU) >> 4U) | static_cast<u64>((leading_bytes & 0x3FFFFU) >> 4U) << 16U |
          static_cast<u64>((stride_bytes & 0x3FFFFU) >> 4U) << 32U | version << 46U | layout << 61U};
}

/// A block of scales: 128 rows by 4, 512 bytes. Scale s of a row is at byte (row % 32)·16 + (row / 32)·4 + s, as in
/// NVFP4's blocked layout.
inline constexpr u32 scale_block_bytes = 512;
inline constexpr u32 scale_block_columns = 4;
TH_DEVICE constexpr Descriptor<Swizzle::none> scale_block(Shared<u8> start) {
  return descriptor<Swizzle::none>(start, 0, 128);
}

/// Copies a block of scales into 4 columns, once into each quarter of the lanes. Column j, lane l of a quarter then
/// holds the scales of row 32·j + l. Each block of a pair copies its own.
template <Group group>
TH_DEVICE void copy_scales(tensor_memory::Columns to, Descriptor<Swizzle::none> block, Site site = here());

/// D (+)= A·Bᵀ; `accumulate` false starts D from zero. In a pair a block holds half of A's rows and half of B's, and
/// D's rows are divided likewise.
template <Group group, Kind kind, Swizzle a_swizzle, Swizzle b_swizzle>
TH_DEVICE void multiply(tensor_memory::Columns sums, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b,
                        Instruction instruction, bool accumulate, Site site = here());
/// Kind::nvfp4: A's scales are 4 columns for 128 rows, those of the block's own half of a pair. B's are 4 columns per
/// 128 of its rows, all of them in both blocks of a pair.
template <Group group, Swizzle a_swizzle, Swizzle b_swizzle>
TH_DEVICE void multiply_scaled(tensor_memory::Columns sums, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b,
                               Instruction instruction, tensor_memory::Columns a_scales,
                               tensor_memory::Columns b_scales, bool accumulate, Site site = here());

/// Arrives once on `done` when all that this thread has issued so far is complete; includes before_barrier().
template <Group group>
TH_DEVICE void commit(Barrier done, Site site = here());
/// The same on the barrier at that offset in each block of the cluster whose bit is set.
template <Group group>
TH_DEVICE void commit_multicast(Barrier done, u16 blocks, Site site = here());

}  // namespace thresher::machine::tcgen05

#if TH_GPU
#include "machine/ptx/tcgen05.hpp"
#else
#include "machine/emulator/tcgen05.hpp"
#endif
