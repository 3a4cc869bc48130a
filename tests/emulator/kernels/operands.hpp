#pragma once
// Threads write both operands of one multiply with ordinary stores: C[64, 32] = A[64, 16]·B[32, 16]ᵀ in fp16, from
// cores of 8 rows × 16 bytes without swizzle.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class OperandDefect {
  none,
  no_fence,               // ordinary stores, barrier, wgmma
  fence_after_barrier,    // the fence on the wrong side
  no_barrier,             // warps multiply what other warps may not have written
  overwritten_in_flight,  // an operand is written again before the wait
  accumulator_set_in_flight,
  accumulators_die_in_flight,
  set_without_settle,    // start values without settle and fence
  beyond_shared_memory,  // B's descriptor reaches past the block's bytes
  fragment,              // no defect: A comes from registers
  fragment_overwritten,  // and is written again before the wait
  fragment_not_settled,  // and was written after its settle
  fragment_not_fenced,   // and was settled after the fence
  copies_not_fenced,     // B comes by cp.async, no fence after its wait
};

struct OperandParams {
  Global<Half> a;   // [64, 16]
  Global<Half> b;   // [32, 16]
  Global<float> c;  // [64, 32]
  OperandDefect defect;
};

inline constexpr u32 operand_shared_bytes = 2048 + 1024;

/// Byte of element (row, column) in cores that lie along k first: 128 bytes a core, 256 a group of 8 rows.
TH_DEVICE constexpr u32 core_offset(u32 row, u32 column) {
  return row / 8 * 256 + column / 8 * 128 + row % 8 * 16 + column % 8 * 2;
}

TH_DEVICE void multiply_operands(const OperandParams& params, Accumulators<32>& sums) {
  const auto is = [&](OperandDefect wanted) { return params.defect == wanted; };
  const Shared<u8> a = launch::shared_memory();
  const Shared<u8> b = a.offset(2048);
  const u32 b_shift = is(OperandDefect::beyond_shared_memory) ? 256 : 0;
  wgmma::fence();
  wgmma::multiply<Half>(sums, wgmma::descriptor<Swizzle::none>(a, 128, 256),
                        wgmma::descriptor<Swizzle::none>(b.offset(b_shift), 128, 256),
                        is(OperandDefect::set_without_settle));
  wgmma::commit();
  if (is(OperandDefect::overwritten_in_flight)) {
    a.as<Half>().store(launch::thread_index(), convert::to_half(0.0F));
  }
  if (is(OperandDefect::accumulator_set_in_flight)) {
    sums.set(0, 1.0F);
  }
}

/// The same product with A in registers.
TH_DEVICE void multiply_fragment(const OperandParams& params, Accumulators<32>& sums) {
  const auto is = [&](OperandDefect wanted) { return params.defect == wanted; };
  const u32 thread = launch::thread_index();
  wgmma::Fragment a{};
  const auto load = [&](u32 word) {
    const u32 row = thread / 32 * 16 + thread % 32 / 4 + word % 2 * 8;
    a.word[word] = params.a.offset(row * 16 + word / 2 * 8 + thread % 4 * 2).as<u32>().load();
  };
  for (u32 word = 0; word < 4; ++word) {
    load(word);
  }
  if (is(OperandDefect::fragment_not_settled)) {
    a.word[0] ^= 1U;
    wgmma::settle(a);
    load(0);
  } else if (!is(OperandDefect::fragment_not_fenced)) {
    wgmma::settle(a);
  }
  wgmma::fence();
  if (is(OperandDefect::fragment_not_fenced)) {
    wgmma::settle(a);
  }
  wgmma::multiply<Half>(sums, a, wgmma::descriptor<Swizzle::none>(launch::shared_memory().offset(2048), 128, 256),
                        false);
  wgmma::commit();
  if (is(OperandDefect::fragment_overwritten)) {
    a.word[3] += 1;
  }
  wgmma::wait<0>();
}

TH_KERNEL(128, 1) operands(TH_GRID_CONSTANT const OperandParams params) {
  const auto is = [&](OperandDefect wanted) { return params.defect == wanted; };
  const u32 thread = launch::thread_index();
  const Shared<u8> a = launch::shared_memory();
  const Shared<u8> b = a.offset(2048);
  for (u32 i = thread; i < 64 * 16; i += 128) {
    a.offset(core_offset(i / 16, i % 16)).as<Half>().store(0, params.a.load(i));
  }
  if (is(OperandDefect::copies_not_fenced)) {
    fence::async_shared();
    if (thread < 64) {
      async_copy::copy16(b.offset(core_offset(thread / 2, thread % 2 * 8)), params.b.offset(thread * 8).as<u8>());
    }
    async_copy::commit();
    async_copy::wait<0>();
  } else {
    for (u32 i = thread; i < 32 * 16; i += 128) {
      b.offset(core_offset(i / 16, i % 16)).as<Half>().store(0, params.b.load(i));
    }
    if (!is(OperandDefect::no_fence) && !is(OperandDefect::fence_after_barrier)) {
      fence::async_shared();
    }
  }
  if (!is(OperandDefect::no_barrier)) {
    block::sync();
  }
  if (is(OperandDefect::fence_after_barrier)) {
    fence::async_shared();
  }
  if (is(OperandDefect::accumulators_die_in_flight)) {
    Accumulators<32> lost;
    multiply_operands(params, lost);
    return;
  }
  Accumulators<32> sums;
  if (is(OperandDefect::set_without_settle)) {
    for (int i = 0; i < Accumulators<32>::elements; ++i) {
      sums.set(i, 0.0F);
    }
  }
  if (params.defect >= OperandDefect::fragment && params.defect <= OperandDefect::fragment_not_fenced) {
    multiply_fragment(params, sums);
  } else {
    multiply_operands(params, sums);
    wgmma::wait<0>();
  }
  wgmma::settle(sums);
  for (int i = 0; i < Accumulators<32>::elements; ++i) {
    const u32 element = static_cast<u32>(i);
    params.c.store(fragment::row(thread, element) * 32 + fragment::column(thread, element), sums.get(i));
  }
}

}  // namespace planted
