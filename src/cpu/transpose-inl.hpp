// Included once for every Highway target: a 4×4 transposition of 32-bit elements.
#include <hwy/highway.h>

#include <cstddef>

#if defined(THRESHER_CPU_TRANSPOSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef THRESHER_CPU_TRANSPOSE_INL
#undef THRESHER_CPU_TRANSPOSE_INL
#else
#define THRESHER_CPU_TRANSPOSE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace thresher::cpu::HWY_NAMESPACE {

/// out[j][i] = in[i][j]; strides in elements. Unaligned.
template <typename T>
HWY_INLINE void Transpose4x4(const T* in, std::size_t in_stride, T* out, std::size_t out_stride) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<T, 4> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  const auto row0 = hn::LoadU(d, in);
  const auto row1 = hn::LoadU(d, in + in_stride);
  const auto row2 = hn::LoadU(d, in + 2 * in_stride);
  const auto row3 = hn::LoadU(d, in + 3 * in_stride);
  const auto lower01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto upper01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto lower23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto upper23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, lower01, lower23)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, lower01, lower23)), d, out + out_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, upper01, upper23)), d, out + 2 * out_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, upper01, upper23)), d, out + 3 * out_stride);
}

}  // namespace thresher::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
