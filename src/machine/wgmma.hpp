#pragma once
/// Matrix products of a warpgroup (4 warps, the first at a multiple of 4): D[64,n] += A[64,k]·B[n,k]ᵀ, asynchronous.
///
/// Order in every warpgroup: fence() — multiply… — commit() — wait<pending>() — settle(accumulators). All 128 threads
/// make every call together with the same arguments. Between a multiply and the wait that retires it, its accumulators
/// and A fragments must not be accessed. The shared memory that it reads must not be refilled either.
#include "machine/shared.hpp"
#include "machine/tensor_map.hpp"

namespace thresher::machine {

/// Position of a thread's element in the fragments of a warpgroup; `thread` is 0…127 within the warpgroup.
namespace fragment {
/// Row 0…63 and column 0…n-1 of accumulator element `i`.
TH_DEVICE constexpr u32 row(u32 thread, u32 i) { return (thread / 32) * 16 + (thread % 32) / 4 + ((i / 2) % 2) * 8; }
TH_DEVICE constexpr u32 column(u32 thread, u32 i) { return (i / 4) * 8 + (thread % 4) * 2 + i % 2; }
}  // namespace fragment

#if TH_GPU
/// The emulator's record of accumulators and fragments beyond their values. Empty on the GPU.
struct AccumulatorShadow {};
struct FragmentShadow {};
#endif

}  // namespace thresher::machine

#if !TH_GPU
#include "machine/emulator/accumulator_shadow.hpp"
#include "machine/emulator/fragment_shadow.hpp"
#endif

namespace thresher::machine {

/// A thread's part of a float32 tile [64, columns], columns = 8, 16 … 256. Its elements are accessed only through get
/// and set, so that the emulator sees reads before the wait and reads of uninitialized elements.
template <int columns>
class Accumulators {
 public:
  static_assert(columns >= 8 && columns <= 256 && columns % 8 == 0, "wgmma has n = 8, 16 … 256");
  static constexpr int elements = columns / 2;

  TH_DEVICE float get(int i, Site site = here()) const;
  TH_DEVICE void set(int i, float value, Site site = here());

 private:
  friend struct AccumulatorAccess;
  float value_[elements];
  [[no_unique_address]] AccumulatorShadow shadow_;
};

namespace wgmma {

/// A thread's part of an A tile [64, k] in registers, k = 16 for 16-bit elements and 32 for 8-bit ones. Word 0 is (row,
/// first columns), 1 is row + 8, 2 is the second half of the columns, 3 is both; row = 16·warp + lane/4. A word holds
/// columns 2c, 2c+1 (16-bit) or 4c … 4c+3 (8-bit), c = lane%4.
struct Fragment {
  u32 word[4];
  [[no_unique_address]] FragmentShadow shadow{};
};
#if TH_GPU
static_assert(sizeof(Fragment) == 16);
#endif

/// The dimension of an operand that is contiguous in shared memory. 8-bit elements: k only.
enum class Major : u8 { k, mn };

/// A typed matrix descriptor. For Major::k and a swizzle of s = 32, 64 or 128 bytes a row of the tile is s bytes and 8
/// rows are one swizzle atom. stride_bytes is the distance between groups of 8 rows (8·s when dense) and leading_bytes
/// is unused. For Swizzle::none cores of 8 rows × 16 bytes are dense; leading_bytes separates cores along k,
/// stride_bytes along rows. For Major::mn with a swizzle of s bytes, s bytes of the mn dimension × 8 of k are one atom.
/// There stride_bytes is the distance between groups of 8 along k, leading_bytes between groups of s bytes along mn.
template <Swizzle swizzle>
struct Descriptor {
  u64 bits;
  /// The same operand starting `bytes` (a multiple of 16) later: inside a swizzle atom a step along k of 16 or 32
  /// elements.
  TH_DEVICE Descriptor advance(u32 bytes) const { return {bits + (bytes >> 4)}; }
  /// The same operand anywhere later in shared memory, added in the lower word only: an address never carries into the
  /// next field.
  TH_DEVICE Descriptor later(u32 bytes) const {
    constexpr u64 upper_half = 0xFFFFFFFF00000000U;
    return {(bits & upper_half) | static_cast<u32>(static_cast<u32>(bits) + (bytes >> 4))};
  }
};

template <Swizzle swizzle>
TH_DEVICE constexpr Descriptor<swizzle> descriptor(Shared<u8> start, u32 leading_bytes, u32 stride_bytes) {
  constexpr u64 layout = swizzle == Swizzle::none ? 0 : 4 - static_cast<u64>(swizzle);  // 1: 128 bytes, 2: 64, 3: 32
  return {((start.address & 0x3FFFFU) >> 4) | (static_cast<u64>((leading_bytes & 0x3FFFFU) >> 4) << 16) |
          (static_cast<u64>((stride_bytes & 0x3FFFFU) >> 4) << 32) | (layout << 62)};
}

/// Orders this warpgroup's earlier accumulator and fragment writes before the multiplies that follow.
TH_DEVICE void fence(Site site = here());

/// The compiler moves no access to these registers across this point. Call it before fence() for accumulators that were
/// set and fragments that were written, and after the wait for accumulators that will be read. get() without it is a
/// finding.
template <int columns>
TH_DEVICE void settle(Accumulators<columns>& accumulators, Site site = here());
TH_DEVICE void settle(Fragment& fragment, Site site = here());

/// D (+)= A·Bᵀ, one instruction: k = 16 for Half and BFloat16, 32 for E4M3. `accumulate` false starts D from zero.
/// Element is Half, BFloat16 or E4M3, of both operands.
template <typename Element, Major a_major = Major::k, Major b_major = Major::k, int columns, Swizzle a_swizzle,
          Swizzle b_swizzle>
TH_DEVICE void multiply(Accumulators<columns>& d, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b, bool accumulate,
                        Site site = here());
/// The same with A from registers. The fragment's words must not be overwritten before the wait that retires it.
template <typename Element, Major b_major = Major::k, int columns, Swizzle b_swizzle>
TH_DEVICE void multiply(Accumulators<columns>& d, const Fragment& a, Descriptor<b_swizzle> b, bool accumulate,
                        Site site = here());

/// Closes the warpgroup's current group of multiplies.
TH_DEVICE void commit(Site site = here());
/// Blocks until at most `pending` groups are in flight. Accumulators of the retired ones may be read after settle().
template <int pending>
TH_DEVICE void wait(Site site = here());

}  // namespace wgmma
}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/wgmma.hpp"
#else
#include "machine/emulator/wgmma.hpp"
#endif
