#pragma once
/// tcgen05 in the emulator.
#include "machine/emulator/engine/tensor_calls.hpp"
#include "machine/tcgen05.hpp"

namespace thresher::machine::tcgen05 {

template <Group group>
void copy_scales(tensor_memory::Columns to, Descriptor<Swizzle::none> block, Site site) {
  emulator::calls::tensor_copy_scales(to.address, block.bits, group == Group::pair, site);
}

template <Group group, Kind kind, Swizzle a_swizzle, Swizzle b_swizzle>
void multiply(tensor_memory::Columns sums, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b, Instruction instruction,
              bool accumulate, Site site) {
  static_assert(kind != Kind::nvfp4, "products with scales are multiply_scaled's");
  emulator::calls::tensor_multiply(
      {.kind = kind == Kind::f16 ? emulator::TensorKind::fp16_or_bf16 : emulator::TensorKind::e4m3,
       .pair = group == Group::pair,
       .accumulate = accumulate,
       .sums = sums.address,
       .a = a.bits,
       .b = b.bits,
       .instruction = instruction.bits},
      site);
}

template <Group group, Swizzle a_swizzle, Swizzle b_swizzle>
void multiply_scaled(tensor_memory::Columns sums, Descriptor<a_swizzle> a, Descriptor<b_swizzle> b,
                     Instruction instruction, tensor_memory::Columns a_scales, tensor_memory::Columns b_scales,
                     bool accumulate, Site site) {
  emulator::calls::tensor_multiply({.kind = emulator::TensorKind::nvfp4,
                                    .pair = group == Group::pair,
                                    .accumulate = accumulate,
                                    .sums = sums.address,
                                    .a = a.bits,
                                    .b = b.bits,
                                    .instruction = instruction.bits,
                                    .a_scales = a_scales.address,
                                    .b_scales = b_scales.address},
                                   site);
}

template <Group group>
void commit(Barrier done, Site site) {
  emulator::calls::tensor_commit(done.address, 0, group == Group::pair, site);
}
template <Group group>
void commit_multicast(Barrier done, u16 blocks, Site site) {
  emulator::calls::tensor_commit(done.address, blocks, group == Group::pair, site);
}

}  // namespace thresher::machine::tcgen05
