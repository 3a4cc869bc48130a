#pragma once
/// Tensor memory in the emulator.
#include "machine/emulator/engine/tensor_calls.hpp"
#include "machine/tensor_memory.hpp"

namespace thresher::machine::tensor_memory {

struct WordsAccess {
  template <int count>
  static u32* of(Words<count>& words) {
    return words.word_;
  }
  template <int count>
  static u64& load(Words<count>& words) {
    return words.loaded_;
  }
};

template <int count>
u32 Words<count>::get(int i, Site site) const {
  emulator::calls::tensor_check_loaded(loaded_, site);
  return word_[i];
}
template <int count>
float Words<count>::get_float(int i, Site site) const {
  return __builtin_bit_cast(float, get(i, site));
}

template <Group group, u32 columns>
void allocate(Shared<u32> at, Site site) {
  static_assert(is_allocation(columns), "32, 64, 128, 256 or 512 columns");
  emulator::calls::tensor_allocate(at.address, columns, group == Group::pair, site);
}
template <Group group, u32 columns>
void deallocate(Columns place, Site site) {
  emulator::calls::tensor_deallocate(place.address, columns, group == Group::pair, site);
}
template <Group group>
void give_up_allocation(Site site) {
  emulator::calls::tensor_give_up_allocation(group == Group::pair, site);
}

template <int count>
Words<count> load_rows(Columns from, Site site) {
  Words<count> words;
  WordsAccess::load(words) = emulator::calls::tensor_load(from.address, true, 0, count, WordsAccess::of(words), site);
  return words;
}
template <int count>
Words<count / 2> load_fragments(Columns from, u32 slab, Site site) {
  Words<count / 2> words;
  WordsAccess::load(words) =
      emulator::calls::tensor_load(from.address, false, slab, count, WordsAccess::of(words), site);
  return words;
}
template <int count>
void wait_loads(Words<count>&, Site site) {
  emulator::calls::tensor_wait_loads(site);
}

inline void before_barrier(Site site) { emulator::calls::tensor_before_barrier(site); }
inline void after_barrier(Site site) { emulator::calls::tensor_after_barrier(site); }

}  // namespace thresher::machine::tensor_memory
