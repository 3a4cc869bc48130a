#pragma once
/// The launch on the GPU.
#include "machine/launch.hpp"

namespace thresher::machine::launch {

namespace ptx {
extern __shared__ __align__(1024) u8 dynamic_shared_memory[];
}  // namespace ptx

TH_DEVICE u32 thread_index() { return threadIdx.x; }
TH_DEVICE u32 thread_count() { return blockDim.x; }
TH_DEVICE Index block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
TH_DEVICE Index block_count() { return {gridDim.x, gridDim.y, gridDim.z}; }

TH_DEVICE Shared<u8> shared_memory() {
  return {static_cast<u32>(__cvta_generic_to_shared(ptx::dynamic_shared_memory))};
}

TH_DEVICE u32 shared_memory_bytes() {
  u32 value;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(value));
  return value;
}

TH_DEVICE void wait_for_earlier_grids(Site) { asm volatile("griddepcontrol.wait;" ::: "memory"); }
TH_DEVICE void release_dependents(Site) { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace thresher::machine::launch
