#pragma once
/// wgmma on the GPU. The operand lists of the 32 widths come from machine/ptx/wgmma_widths.hpp.
#include "machine/ptx/wgmma_widths.hpp"
#include "machine/wgmma.hpp"

namespace thresher::machine {

template <int columns>
TH_DEVICE float Accumulators<columns>::get(int i, Site) const {
  return value_[i];
}

template <int columns>
TH_DEVICE void Accumulators<columns>::set(int i, float value, Site) {
  value_[i] = value;
}

struct AccumulatorAccess {
  template <int columns>
  static TH_DEVICE float* values(Accumulators<columns>& accumulators) {
    return accumulators.value_;
  }
};

namespace wgmma {

namespace ptx {

/// One instruction per element type, operand source and width: specialised below.
template <typename Element, int columns>
struct FromShared;
template <typename Element, int columns>
struct FromRegisters;

/// `e0`…`e4` are the operand numbers after the accumulators: A's descriptor, B's descriptor, accumulate, transposes.
#define TH_WGMMA_SHARED_16(Type, name, n, list, operands, e0, e1, e2, e3, e4, e5, e6)                            \
  template <>                                                                                                    \
  struct FromShared<Type, n> {                                                                                   \
    template <int a_transposed, int b_transposed>                                                                \
    static TH_DEVICE void issue(float* d, u64 a, u64 b, u32 accumulate) {                                        \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #e2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n         \
                   "k16.f32." name "." name " {" list "}, %" #e0 ", %" #e1 ", p, 1, 1, %" #e3 ", %" #e4 ";\n}\n" \
                   : operands                                                                                    \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(a_transposed), "n"(b_transposed));                     \
    }                                                                                                            \
  };

#define TH_WGMMA_SHARED_8(Type, name, n, list, operands, e0, e1, e2, e3, e4, e5, e6)                     \
  template <>                                                                                            \
  struct FromShared<Type, n> {                                                                           \
    template <int a_transposed, int b_transposed>                                                        \
    static TH_DEVICE void issue(float* d, u64 a, u64 b, u32 accumulate) {                                \
      static_assert(a_transposed == 0 && b_transposed == 0, "8-bit operands are k-major");               \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #e2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n \
                   "k32.f32." name "." name " {" list "}, %" #e0 ", %" #e1 ", p, 1, 1;\n}\n"             \
                   : operands                                                                            \
                   : "l"(a), "l"(b), "r"(accumulate));                                                   \
    }                                                                                                    \
  };

#define TH_WGMMA_REGISTERS_16(Type, name, n, list, operands, e0, e1, e2, e3, e4, e5, e6)                      \
  template <>                                                                                                 \
  struct FromRegisters<Type, n> {                                                                             \
    template <int b_transposed>                                                                               \
    static TH_DEVICE void issue(float* d, const Fragment& a, u64 b, u32 accumulate) {                         \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #e5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n      \
                   "k16.f32." name "." name " {" list "}, {%" #e0 ", %" #e1 ", %" #e2 ", %" #e3 "}, %" #e4    \
                   ", p, 1, 1, %" #e6 ";\n}\n"                                                                \
                   : operands                                                                                 \
                   : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b), "r"(accumulate), \
                     "n"(b_transposed));                                                                      \
    }                                                                                                         \
  };

#define TH_WGMMA_REGISTERS_8(Type, name, n, list, operands, e0, e1, e2, e3, e4, e5, e6)                        \
  template <>                                                                                                  \
  struct FromRegisters<Type, n> {                                                                              \
    template <int b_transposed>                                                                                \
    static TH_DEVICE void issue(float* d, const Fragment& a, u64 b, u32 accumulate) {                          \
      static_assert(b_transposed == 0, "8-bit operands are k-major");                                          \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #e5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n       \
                   "k32.f32." name "." name " {" list "}, {%" #e0 ", %" #e1 ", %" #e2 ", %" #e3 "}, %" #e4     \
                   ", p, 1, 1;\n}\n"                                                                           \
                   : operands                                                                                  \
                   : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b), "r"(accumulate)); \
    }                                                                                                          \
  };

TH_WGMMA_WIDTHS(TH_WGMMA_SHARED_16, Half, "f16")
TH_WGMMA_WIDTHS(TH_WGMMA_SHARED_16, BFloat16, "bf16")
TH_WGMMA_WIDTHS(TH_WGMMA_SHARED_8, E4M3, "e4m3")
TH_WGMMA_WIDTHS(TH_WGMMA_REGISTERS_16, Half, "f16")
TH_WGMMA_WIDTHS(TH_WGMMA_REGISTERS_16, BFloat16, "bf16")
TH_WGMMA_WIDTHS(TH_WGMMA_REGISTERS_8, E4M3, "e4m3")

#undef TH_WGMMA_SHARED_16
#undef TH_WGMMA_SHARED_8
#undef TH_WGMMA_REGISTERS_16
#undef TH_WGMMA_REGISTERS_8

}  // namespace ptx

TH_DEVICE void fence(Site) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TH_DEVICE void commit(Site) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int pending>
TH_DEVICE void wait(Site) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

template <int columns>
TH_DEVICE void settle(Accumulators<columns>& accumulators, Site) {
  float* values = AccumulatorAccess::values(accumulators);
  TH_UNROLL
  for (int i = 0; i < Accumulators<columns>::elements; ++i) {
    asm volatile("" : "+f"(values[i])::"memory");
  }
}

TH_DEVICE void settle(Fragment& fragment, Site) {
  asm volatile(""
               : "+r"(fragment.word[0]), "+r"(fragment.word[1]), "+r"(fragment.word[2]), "+r"(fragment.word[3])
               :
               : "memory");
}

template <typename Element, Major a_major, Major b_major, int columns, Swizzle a_swizzle, Swizzle b_swizzle>
TH_DEVICE void multiply(Accumulators<columns>& d, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b, bool accumulate,
                        Site) {
  ptx::FromShared<Element, columns>::template issue<static_cast<int>(a_major), static_cast<int>(b_major)>(
      AccumulatorAccess::values(d), a.bits, b.bits, accumulate ? 1U : 0U);
}

template <typename Element, Major b_major, int columns, Swizzle b_swizzle>
TH_DEVICE void multiply(Accumulators<columns>& d, const Fragment& a, Descriptor<b_swizzle> b, bool accumulate, Site) {
  ptx::FromRegisters<Element, columns>::template issue<static_cast<int>(b_major)>(AccumulatorAccess::values(d), a,
                                                                                  b.bits, accumulate ? 1U : 0U);
}

}  // namespace wgmma
}  // namespace thresher::machine
