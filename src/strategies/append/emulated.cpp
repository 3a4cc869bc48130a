#include "strategies/append/call.hpp"
#include "strategies/append/device/kernel.hpp"
#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies::append {
namespace {

template <class Element, class CacheElement, Turn... turns>
void add(std::vector<CompiledIn>& kernels, Format format, Format cache) {
  (kernels.push_back({append_kernel_name(format, cache, turns), &host_kernel<&append<Element, CacheElement, turns>>}),
   ...);
}

template <class Element, class CacheElement>
void add_turns(std::vector<CompiledIn>& kernels, Format format, Format cache) {
  add<Element, CacheElement, Turn::none, Turn::halves, Turn::single_halves, Turn::interleaved>(kernels, format, cache);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  add_turns<Half, Half>(kernels, Format::fp16, Format::fp16);
  add_turns<Half, E4M3>(kernels, Format::fp16, Format::fp8_e4m3);
  add_turns<BFloat16, BFloat16>(kernels, Format::bf16, Format::bf16);
  add_turns<BFloat16, E4M3>(kernels, Format::bf16, Format::fp8_e4m3);
  return kernels;
}

}  // namespace thresher::strategies::append
