#pragma once
/// Clusters in the emulator: their blocks run interleaved.
#include "machine/cluster.hpp"
#include "machine/emulator/barrier.hpp"
#include "machine/emulator/engine/calls.hpp"

namespace thresher::machine::cluster {

inline u32 rank() { return emulator::calls::cluster_rank(); }
inline u32 size() { return emulator::calls::cluster_size(); }
inline void arrive(Site site) { emulator::calls::cluster_arrive(true, site); }
inline void arrive_relaxed(Site site) { emulator::calls::cluster_arrive(false, site); }
inline void wait(Site site) { emulator::calls::cluster_wait(site); }
inline void sync(Site site) {
  arrive(site);
  wait(site);
}

template <typename T>
Remote<T> map(Shared<T> own, u32 block_rank) {
  return {emulator::calls::cluster_map(own.address, block_rank)};
}
inline RemoteBarrier map(Barrier own, u32 block_rank) {
  return {emulator::calls::cluster_map(own.address, block_rank)};
}

template <typename T>
void store_async(Remote<T> destination, const T& value, RemoteBarrier full, Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "st.async stores 4, 8 or 16 bytes");
  emulator::calls::store_async(destination.address, &value, sizeof(T), full.address, site);
}

}  // namespace thresher::machine::cluster
