#pragma once
/// tcgen05 on the GPU (sm_100f). The issuing thread is elected: outside of an elected branch the compiler would
/// generate a loop that issues once per thread.
#include "machine/tcgen05.hpp"

namespace thresher::machine::tcgen05 {

template <Group group>
TH_DEVICE void copy_scales(tensor_memory::Columns to, Descriptor<Swizzle::none> block, Site) {
  if constexpr (group == Group::pair) {
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(to.address), "l"(block.bits) : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to.address), "l"(block.bits) : "memory");
  }
}

#define TH_TCGEN05_MULTIPLY(group, kind)                                                               \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::" group ".kind::" kind \
               " [%0], %1, %2, %3, p;\n}\n" ::"r"(sums.address),                                       \
               "l"(a.bits), "l"(b.bits), "r"(instruction.bits), "r"(accumulate ? 1U : 0U)              \
               : "memory")

template <Group group, Kind kind, Swizzle a_swizzle, Swizzle b_swizzle>
TH_DEVICE void multiply(tensor_memory::Columns sums, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b,
                        Instruction instruction, bool accumulate, Site) {
  static_assert(kind != Kind::nvfp4, "products with scales are multiply_scaled's");
  if constexpr (group == Group::pair && kind == Kind::f16) {
    TH_TCGEN05_MULTIPLY("2", "f16");
  } else if constexpr (group == Group::pair) {
    TH_TCGEN05_MULTIPLY("2", "f8f6f4");
  } else if constexpr (kind == Kind::f16) {
    TH_TCGEN05_MULTIPLY("1", "f16");
  } else {
    TH_TCGEN05_MULTIPLY("1", "f8f6f4");
  }
}
#undef TH_TCGEN05_MULTIPLY

#define TH_TCGEN05_MULTIPLY_SCALED(group)                                                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\ntcgen05.mma.cta_group::" group                         \
               ".kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%4], [%5], p;\n}\n" ::"r"(sums.address), \
               "l"(a.bits), "l"(b.bits), "r"(instruction.bits), "r"(a_scales.address), "r"(b_scales.address),   \
               "r"(accumulate ? 1U : 0U)                                                                        \
               : "memory")

template <Group group, Swizzle a_swizzle, Swizzle b_swizzle>
TH_DEVICE void multiply_scaled(tensor_memory::Columns sums, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b,
                               Instruction instruction, tensor_memory::Columns a_scales,
                               tensor_memory::Columns b_scales, bool accumulate, Site) {
  if constexpr (group == Group::pair) {
    TH_TCGEN05_MULTIPLY_SCALED("2");
  } else {
    TH_TCGEN05_MULTIPLY_SCALED("1");
  }
}
#undef TH_TCGEN05_MULTIPLY_SCALED

template <Group group>
TH_DEVICE void commit(Barrier done, Site) {
  if constexpr (group == Group::pair) {
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(done.address)
                 : "memory");
  } else {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(done.address)
                 : "memory");
  }
}

template <Group group>
TH_DEVICE void commit_multicast(Barrier done, u16 blocks, Site) {
  if constexpr (group == Group::pair) {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            done.address),
        "h"(blocks)
        : "memory");
  } else {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            done.address),
        "h"(blocks)
        : "memory");
  }
}

}  // namespace thresher::machine::tcgen05
