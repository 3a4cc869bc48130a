#pragma once
/// Tensor memory on the GPU (sm_100f).
#include "machine/tensor_memory.hpp"

namespace thresher::machine::tensor_memory {

struct WordsAccess {
  template <int count>
  static TH_DEVICE u32* of(Words<count>& words) {
    return words.word_;
  }
};

template <int count>
TH_DEVICE u32 Words<count>::get(int i, Site) const {
  return word_[i];
}
template <int count>
TH_DEVICE float Words<count>::get_float(int i, Site) const {
  return __uint_as_float(word_[i]);
}

template <Group group, u32 columns>
TH_DEVICE void allocate(Shared<u32> at, Site) {
  static_assert(is_allocation(columns), "32, 64, 128, 256 or 512 columns");
  if constexpr (group == Group::pair) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at.address), "n"(columns)
                 : "memory");
  } else {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at.address), "n"(columns)
                 : "memory");
  }
}

template <Group group, u32 columns>
TH_DEVICE void deallocate(Columns place, Site) {
  if constexpr (group == Group::pair) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(place.address), "n"(columns) : "memory");
  } else {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(place.address), "n"(columns) : "memory");
  }
}

template <Group group>
TH_DEVICE void give_up_allocation(Site) {
  if constexpr (group == Group::pair) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
  } else {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
  }
}

TH_DEVICE void before_barrier(Site) { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
TH_DEVICE void after_barrier(Site) { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

namespace ptx {

/// The address with this warp's quarter of the lanes, and `more` lanes within it.
TH_DEVICE u32 in_own_quarter(Columns from, u32 more) {
  const u32 quarter = (threadIdx.x / 32U) % 4U;
  return from.address + ((quarter * 32U + more) << 16U);
}

/// Operand numbers and outputs of a load of that many words.
#define TH_TENSOR_LIST_4 "%0, %1, %2, %3"
#define TH_TENSOR_OUTPUTS_4 "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
#define TH_TENSOR_LIST_8 TH_TENSOR_LIST_4 ", %4, %5, %6, %7"
#define TH_TENSOR_OUTPUTS_8 TH_TENSOR_OUTPUTS_4, "=r"(word[4]), "=r"(word[5]), "=r"(word[6]), "=r"(word[7])
#define TH_TENSOR_LIST_16 TH_TENSOR_LIST_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TH_TENSOR_OUTPUTS_16                                                                                         \
  TH_TENSOR_OUTPUTS_8, "=r"(word[8]), "=r"(word[9]), "=r"(word[10]), "=r"(word[11]), "=r"(word[12]), "=r"(word[13]), \
      "=r"(word[14]), "=r"(word[15])
#define TH_TENSOR_LIST_32 \
  TH_TENSOR_LIST_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TH_TENSOR_OUTPUTS_32                                                                                          \
  TH_TENSOR_OUTPUTS_16, "=r"(word[16]), "=r"(word[17]), "=r"(word[18]), "=r"(word[19]), "=r"(word[20]),               \
      "=r"(word[21]), "=r"(word[22]), "=r"(word[23]), "=r"(word[24]), "=r"(word[25]), "=r"(word[26]), "=r"(word[27]), \
      "=r"(word[28]), "=r"(word[29]), "=r"(word[30]), "=r"(word[31])
#define TH_TENSOR_LIST_64                                                                                       \
  TH_TENSOR_LIST_32                                                                                             \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, " \
  "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TH_TENSOR_OUTPUTS_64                                                                                          \
  TH_TENSOR_OUTPUTS_32, "=r"(word[32]), "=r"(word[33]), "=r"(word[34]), "=r"(word[35]), "=r"(word[36]),               \
      "=r"(word[37]), "=r"(word[38]), "=r"(word[39]), "=r"(word[40]), "=r"(word[41]), "=r"(word[42]), "=r"(word[43]), \
      "=r"(word[44]), "=r"(word[45]), "=r"(word[46]), "=r"(word[47]), "=r"(word[48]), "=r"(word[49]), "=r"(word[50]), \
      "=r"(word[51]), "=r"(word[52]), "=r"(word[53]), "=r"(word[54]), "=r"(word[55]), "=r"(word[56]), "=r"(word[57]), \
      "=r"(word[58]), "=r"(word[59]), "=r"(word[60]), "=r"(word[61]), "=r"(word[62]), "=r"(word[63])

#define TH_TENSOR_LOAD(function, shape, count)                                                        \
  static TH_DEVICE void function(u32* word, u32 address) {                                            \
    asm volatile("tcgen05.ld.sync.aligned." shape ".b32 {" TH_TENSOR_LIST_##count "}, [%" #count "];" \
                 : TH_TENSOR_OUTPUTS_##count                                                          \
                 : "r"(address)                                                                       \
                 : "memory");                                                                         \
  }
/// A fragment's word count is four per group of 256 bits.
#define TH_TENSOR_LOADS(count, groups)                    \
  template <>                                             \
  struct Load<count> {                                    \
    TH_TENSOR_LOAD(rows, "32x32b.x" #count, count)        \
    TH_TENSOR_LOAD(fragments, "16x256b.x" #groups, count) \
  };

template <int words>
struct Load;
template <>
struct Load<4> {
  TH_TENSOR_LOAD(fragments, "16x256b.x1", 4)
};
TH_TENSOR_LOADS(8, 2)
TH_TENSOR_LOADS(16, 4)
TH_TENSOR_LOADS(32, 8)
TH_TENSOR_LOADS(64, 16)

#undef TH_TENSOR_LOADS
#undef TH_TENSOR_LOAD
#undef TH_TENSOR_LIST_4
#undef TH_TENSOR_OUTPUTS_4
#undef TH_TENSOR_LIST_8
#undef TH_TENSOR_OUTPUTS_8
#undef TH_TENSOR_LIST_16
#undef TH_TENSOR_OUTPUTS_16
#undef TH_TENSOR_LIST_32
#undef TH_TENSOR_OUTPUTS_32
#undef TH_TENSOR_LIST_64
#undef TH_TENSOR_OUTPUTS_64

}  // namespace ptx

template <int count>
TH_DEVICE Words<count> load_rows(Columns from, Site) {
  Words<count> words;
  ptx::Load<count>::rows(WordsAccess::of(words), ptx::in_own_quarter(from, 0));
  return words;
}

template <int count>
TH_DEVICE Words<count / 2> load_fragments(Columns from, u32 slab, Site) {
  Words<count / 2> words;
  ptx::Load<count / 2>::fragments(WordsAccess::of(words), ptx::in_own_quarter(from, slab * 16U));
  return words;
}

/// No use of the words moves before the wait in the compiled code.
template <int count>
TH_DEVICE void wait_loads(Words<count>& words, Site) {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  TH_UNROLL
  for (int i = 0; i < count; ++i) {
    asm volatile("" : "+r"(WordsAccess::of(words)[i])::"memory");
  }
}

}  // namespace thresher::machine::tensor_memory
