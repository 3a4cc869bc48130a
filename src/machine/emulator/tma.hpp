#pragma once
/// The TMA in the emulator. Cache hints have no effect.
#include "machine/emulator/barrier.hpp"
#include "machine/emulator/engine/calls.hpp"
#include "machine/tma.hpp"

namespace thresher::machine::tma {

inline void prefetch(const TensorMap&, Site) {}

template <int rank>
void load(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, CacheHint, Site site) {
  emulator::calls::tma_load(destination.address, &map, full.address, at.coordinate, rank, site);
}
template <int rank>
void load_multicast(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, u16 block_mask, CacheHint,
                    Site site) {
  emulator::calls::tma_load_multicast(destination.address, &map, full.address, at.coordinate, rank, block_mask, site);
}
template <int rank>
void load_pair(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, Site site) {
  emulator::calls::tma_load_pair(destination.address, &map, full.address, at.coordinate, rank, site);
}
template <int rank>
void load_pair_multicast(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, u16 block_mask,
                         Site site) {
  emulator::calls::tma_load_pair_multicast(destination.address, &map, full.address, at.coordinate, rank, block_mask,
                                           site);
}
template <int rank>
void store(const TensorMap& map, Shared<u8> source, At<rank> at, Site site) {
  emulator::calls::tma_store(&map, source.address, at.coordinate, rank, site);
}
inline void load_bulk(Shared<u8> destination, Global<u8> source, u32 bytes, Barrier full, CacheHint, Site site) {
  emulator::calls::bulk_load(destination.address, source.address, bytes, full.address, site);
}
inline void load_bulk_multicast(Shared<u8> destination, Global<u8> source, u32 bytes, Barrier full, u16 block_mask,
                                Site site) {
  emulator::calls::bulk_load_multicast(destination.address, source.address, bytes, full.address, block_mask, site);
}
inline void prefetch_bulk(Global<u8> source, u32 bytes, Site site) {
  emulator::calls::bulk_prefetch(source.address, bytes, site);
}
inline void commit(Site site) { emulator::calls::tma_commit(site); }
template <int pending>
void wait_read(Site site) {
  emulator::calls::tma_wait(pending, false, site);
}
template <int pending>
void wait(Site site) {
  emulator::calls::tma_wait(pending, true, site);
}

}  // namespace thresher::machine::tma
