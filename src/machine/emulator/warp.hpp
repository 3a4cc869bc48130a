#pragma once
/// Warps in the emulator: lanes synchronise and exchange words.
#include "machine/emulator/engine/calls.hpp"
#include "machine/warp.hpp"

namespace thresher::machine::warp {
namespace emulated {

template <typename T>
u64 word_of(T value) {
  static_assert(sizeof(T) == 4, "shuffles move 4-byte values");
  return __builtin_bit_cast(u32, value);
}

template <typename T>
T value_of(u64 word) {
  return __builtin_bit_cast(T, static_cast<u32>(word));
}

inline const auto* exchange(const char* call, u64 word, Site site) {
  return emulator::calls::warp_exchange(call, word, all_lanes, false, site);
}

}  // namespace emulated

inline u32 lane() { return emulator::calls::lane(); }
/// On the GPU this is a shuffle, in which a lane that calls alone waits forever.
inline u32 index(Site site) {
  emulated::exchange("warp::index", 0, site);
  return emulator::calls::thread_index() / 32;
}
inline u32 group_index(Site site) {
  emulated::exchange("warp::group_index", 0, site);
  return emulator::calls::thread_index() / 128;
}

inline bool elect(Site site) {
  emulated::exchange("warp::elect", 0, site);
  return lane() == 0;
}

template <typename T>
T shuffle(T value, u32 source, Site site) {
  return emulated::value_of<T>(emulated::exchange("warp::shuffle", emulated::word_of(value), site)[source % 32]);
}

template <typename T>
T shuffle_xor(T value, u32 lane_mask, Site site) {
  const u32 source = lane() ^ lane_mask;
  const auto* given = emulated::exchange("warp::shuffle_xor", emulated::word_of(value), site);
  return source < 32 ? emulated::value_of<T>(given[source]) : value;
}

template <typename T>
T shuffle_up(T value, u32 distance, Site site) {
  const auto* given = emulated::exchange("warp::shuffle_up", emulated::word_of(value), site);
  return lane() >= distance ? emulated::value_of<T>(given[lane() - distance]) : value;
}

/// One exchange instead of five: each lane computes the steps that lead to its own value.
template <typename T, typename Combine>
T reduce(T value, const Combine& combine, Site site) {
  const auto* given = emulated::exchange("warp::reduce", emulated::word_of(value), site);
  const u32 own = lane();
  T at[32];  // of the lane that differs from this one in the bits of the index
  for (u32 i = 0; i < 32; ++i) {
    at[i] = emulated::value_of<T>(given[own ^ i]);
  }
  for (u32 distance = 16; distance > 0; distance /= 2) {
    for (u32 i = 0; i < distance; ++i) {
      at[i] = combine(at[i], at[i ^ distance]);
    }
  }
  return at[0];
}

inline u32 ballot(bool predicate, Site site) {
  const auto* given = emulated::exchange("warp::ballot", predicate ? 1 : 0, site);
  u32 mask = 0;
  for (u32 i = 0; i < 32; ++i) {
    mask |= static_cast<u32>(given[i]) << i;
  }
  return mask;
}

inline bool any(bool predicate, Site site) { return ballot(predicate, site) != 0; }
inline bool all(bool predicate, Site site) { return ballot(!predicate, site) == 0; }

inline void sync(u32 mask, Site site) { emulator::calls::warp_exchange("warp::sync", 0, mask, true, site); }

}  // namespace thresher::machine::warp
