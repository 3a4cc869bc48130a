#pragma once
/// The timestamps of a profiled kernel's roles, in microseconds. Pure.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/shape.hpp"

namespace thresher::arena {

/// One step of a role, relative to the start of its block.
struct Segment {
  std::string name;  ///< "start-up", "first loads", "main loop", "exchange", "epilogue"; the producer's is "loads"
  double begin_us = 0;
  double end_us = 0;
};

struct RoleTimeline {
  std::string role;  ///< "math 0", …, "loader"
  std::vector<Segment> segments;
};

/// The time of a block on its multiprocessor, from the start of the first block.
struct BlockSpan {
  double begin_us = 0;
  double end_us = 0;
};

struct Timeline {
  std::vector<RoleTimeline> roles;  ///< medians over all blocks
  std::vector<BlockSpan> blocks;    ///< in the order of their numbers
  double clock_ghz = 0;             ///< of the multiprocessors, from cycles and nanoseconds
  double span_us = 0;               ///< first block's start to last block's end
};

/// `words` as pipeline/timeline.hpp lays them out. Throws Error(internal) when a block left no timestamps.
[[nodiscard]] Timeline read_timeline(std::span<const std::uint64_t> words, const pipeline::Shape& shape);

}  // namespace thresher::arena
