#pragma once
/// A libcuda.so.1 without a GPU behind it: one H200 that notes every launch and executes none. What it does not stand
/// in for (allocation, synchronisation) fails, so that a caller who should not ask for it is found out.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace thresher::testing {

struct RecordedLaunch {
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned cluster = 1;
  unsigned shared_bytes = 0;
  bool dependent = false;
  std::array<std::byte, 512> parameter{};  ///< its first bytes
};

struct DriverRecord {
  std::vector<RecordedLaunch> launches;
  int asked_places = 0;              ///< pointers whose memory it was asked for
  int encoded_maps = 0;              ///< a map's first 8 bytes are the address that it describes
  int max_dynamic_shared_bytes = 0;  ///< what a kernel was last allowed; a launch that asks for more of it fails
};

inline constexpr int recorded_multiprocessors = 132;
inline constexpr int recorded_blocks_per_multiprocessor = 2;
inline constexpr int recorded_resident_clusters = 60;
inline constexpr std::uintptr_t recorded_page_bytes = 1 << 20;  ///< the page behind the first is the GPU's memory

DriverRecord& driver_record();

}  // namespace thresher::testing
