#pragma once
/// wgmma in the emulator.
#include "machine/emulator/engine/product.hpp"
#include "machine/wgmma.hpp"

namespace thresher::machine {

template <int columns>
float Accumulators<columns>::get(int i, Site site) const {
  shadow_.on_get(i, site);
  return value_[i];
}

template <int columns>
void Accumulators<columns>::set(int i, float value, Site site) {
  shadow_.on_set(i, site);
  value_[i] = value;
}

struct AccumulatorAccess {
  template <int columns>
  static float* values(Accumulators<columns>& accumulators) {
    return accumulators.value_;
  }
  template <int columns>
  static AccumulatorShadow& shadow(Accumulators<columns>& accumulators) {
    return accumulators.shadow_;
  }
};

namespace wgmma {
namespace emulated {

template <typename Element>
struct ElementOf;
template <>
struct ElementOf<Half> {
  static constexpr auto value = emulator::ProductElement::fp16;
};
template <>
struct ElementOf<BFloat16> {
  static constexpr auto value = emulator::ProductElement::bf16;
};
template <>
struct ElementOf<E4M3> {
  static constexpr auto value = emulator::ProductElement::e4m3;
};

template <typename Element, Major a_major, Major b_major, int columns>
emulator::ProductCall call(Accumulators<columns>& d, bool accumulate) {
  static_assert(sizeof(Element) == 2 || (a_major == Major::k && b_major == Major::k), "8-bit operands are k-major");
  emulator::ProductCall made;
  made.element = ElementOf<Element>::value;
  made.columns = columns;
  made.accumulate = accumulate;
  made.a_mn_major = a_major == Major::mn;
  made.b_mn_major = b_major == Major::mn;
  made.values = AccumulatorAccess::values(d);
  made.shadow = &AccumulatorAccess::shadow(d);
  return made;
}

}  // namespace emulated

inline void fence(Site site) { emulator::calls::product_fence(site); }

template <int columns>
void settle(Accumulators<columns>& accumulators, Site site) {
  AccumulatorAccess::shadow(accumulators).on_settle(site);
}
inline void settle(Fragment& fragment, Site) { fragment.shadow.on_settle(fragment.word); }

template <typename Element, Major a_major, Major b_major, int columns, Swizzle a_swizzle, Swizzle b_swizzle>
void multiply(Accumulators<columns>& d, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b, bool accumulate, Site site) {
  emulator::ProductCall made = emulated::call<Element, a_major, b_major>(d, accumulate);
  made.a = a.bits;
  made.b = b.bits;
  emulator::calls::product(made, site);
}

template <typename Element, Major b_major, int columns, Swizzle b_swizzle>
void multiply(Accumulators<columns>& d, const Fragment& a, Descriptor<b_swizzle> b, bool accumulate, Site site) {
  emulator::ProductCall made = emulated::call<Element, Major::k, b_major>(d, accumulate);
  a.shadow.on_multiply(a.word, site);
  made.a_words = a.word;
  made.b = b.bits;
  emulator::calls::product(made, site);
}

inline void commit(Site site) { emulator::calls::product_commit(site); }
template <int pending>
void wait(Site site) {
  emulator::calls::product_wait(pending, site);
}

}  // namespace wgmma
}  // namespace thresher::machine
