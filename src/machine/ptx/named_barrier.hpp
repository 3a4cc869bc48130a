#pragma once
/// Hardware barriers of a block on the GPU.
#include "machine/named_barrier.hpp"

namespace thresher::machine {

namespace block {
TH_DEVICE void sync(Site) { __syncthreads(); }
}  // namespace block

namespace named_barrier {
TH_DEVICE void sync(u32 id, u32 threads, Site) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
TH_DEVICE void arrive(u32 id, u32 threads, Site) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
}  // namespace named_barrier

}  // namespace thresher::machine
