#pragma once
/// The calls of the emulated bodies of tensor memory and tcgen05. Addresses are those of the vocabulary's handles.
/// Instruction words and descriptors are passed as bits, which the emulator decodes independently.
#include <cstdint>

#include "machine/types.hpp"

namespace thresher::emulator {

enum class TensorKind : std::uint8_t { fp16_or_bf16, e4m3, nvfp4 };

struct TensorProductCall {
  TensorKind kind{};
  bool pair = false;
  bool accumulate = false;
  std::uint32_t sums = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint32_t instruction = 0;
  std::uint32_t a_scales = 0;  ///< nvfp4
  std::uint32_t b_scales = 0;
};

namespace calls {

using machine::Site;

void tensor_allocate(std::uint32_t at, std::uint32_t columns, bool pair, Site site);
void tensor_deallocate(std::uint32_t address, std::uint32_t columns, bool pair, Site site);
void tensor_give_up_allocation(bool pair, Site site);
/// Fills `words`; returns the number of the load among those of this warp. `rows`: one lane per thread; otherwise 16
/// lanes in the accumulator fragment.
std::uint64_t tensor_load(std::uint32_t address, bool rows, std::uint32_t slab, std::uint32_t columns,
                          std::uint32_t* words, Site site);
void tensor_wait_loads(Site site);
/// Checks that the words of a load are read only after a wait for it.
void tensor_check_loaded(std::uint64_t load, Site site);
void tensor_before_barrier(Site site);
void tensor_after_barrier(Site site);

void tensor_copy_scales(std::uint32_t to, std::uint64_t block, bool pair, Site site);
void tensor_multiply(const TensorProductCall& call, Site site);
/// `blocks`: one bit per block of the cluster; 0: only this one.
void tensor_commit(std::uint32_t barrier, std::uint16_t blocks, bool pair, Site site);

}  // namespace calls
}  // namespace thresher::emulator
