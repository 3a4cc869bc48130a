#pragma once
/// One thread's arguments of a wgmma multiply.
#include <cstdint>

#include "machine/emulator/accumulator_shadow.hpp"
#include "machine/types.hpp"

namespace thresher::emulator {

enum class ProductElement : std::uint8_t { fp16, bf16, e4m3 };

struct ProductCall {
  ProductElement element{};
  std::uint32_t columns = 0;
  bool accumulate = false;
  const std::uint32_t* a_words = nullptr;  ///< four fragment words, or null: A from shared memory
  std::uint64_t a = 0;                     ///< descriptors
  std::uint64_t b = 0;
  bool a_mn_major = false;
  bool b_mn_major = false;
  float* values = nullptr;
  machine::AccumulatorShadow* shadow = nullptr;
};

struct Warpgroup;
/// Multiplies in flight discard the results of destroyed accumulators.
void forget_accumulators(Warpgroup& group, const machine::AccumulatorShadow* shadow);

namespace calls {

void product(const ProductCall& call, machine::Site site);
void product_fence(machine::Site site);
void product_commit(machine::Site site);
void product_wait(std::uint32_t pending, machine::Site site);

}  // namespace calls
}  // namespace thresher::emulator
