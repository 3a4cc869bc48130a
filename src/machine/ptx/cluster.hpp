#pragma once
/// Clusters on the GPU.
#include "machine/cluster.hpp"

namespace thresher::machine::cluster {

TH_DEVICE u32 rank() {
  u32 value;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
  return value;
}

TH_DEVICE u32 size() {
  u32 value;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(value));
  return value;
}

TH_DEVICE void arrive(Site) { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
TH_DEVICE void arrive_relaxed(Site) { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
TH_DEVICE void wait(Site) { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
TH_DEVICE void sync(Site) {
  arrive();
  wait();
}

namespace ptx {
TH_DEVICE u32 map_address(u32 own, u32 block_rank) {
  u32 mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(own), "r"(block_rank));
  return mapped;
}
}  // namespace ptx

template <typename T>
TH_DEVICE Remote<T> map(Shared<T> own, u32 block_rank) {
  return {ptx::map_address(own.address, block_rank)};
}

TH_DEVICE RemoteBarrier map(Barrier own, u32 block_rank) { return {ptx::map_address(own.address, block_rank)}; }

template <typename T>
TH_DEVICE void store_async(Remote<T> destination, const T& value, RemoteBarrier full, Site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(destination.address),
                 "r"(__builtin_bit_cast(u32, value)), "r"(full.address)
                 : "memory");
  } else if constexpr (sizeof(T) == 8) {
    const auto words = __builtin_bit_cast(machine::ptx::Pair, value);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(destination.address),
        "r"(words.x), "r"(words.y), "r"(full.address)
        : "memory");
  } else {
    const auto words = __builtin_bit_cast(machine::ptx::Quad, value);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                     destination.address),
                 "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "r"(full.address)
                 : "memory");
  }
}

}  // namespace thresher::machine::cluster
