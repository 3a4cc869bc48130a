#include "arena/profile/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "arena/timing/statistics.hpp"
#include "pipeline/timeline.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using pipeline::Moment;

/// The timestamps of one role of one block.
class Marks {
 public:
  explicit Marks(const std::uint64_t* words) : words_(words) {}
  [[nodiscard]] std::uint64_t cycles(Moment moment) const { return words_[static_cast<int>(moment)]; }
  [[nodiscard]] bool has(Moment moment) const { return cycles(moment) != 0; }
  [[nodiscard]] std::uint64_t first_ns() const { return words_[pipeline::moments]; }
  [[nodiscard]] std::uint64_t last_ns() const { return words_[pipeline::moments + 1]; }

 private:
  const std::uint64_t* words_;
};

class Reader {
 public:
  Reader(std::span<const std::uint64_t> words, const pipeline::Shape& shape) : words_(words), shape_(shape) {}

  [[nodiscard]] std::size_t blocks() const {
    return words_.size() / static_cast<std::size_t>(pipeline::profile_words_of_block(shape_));
  }
  [[nodiscard]] int roles() const { return shape_.math_warpgroups + 1; }
  [[nodiscard]] bool is_loader(int role) const { return role == shape_.math_warpgroups; }
  [[nodiscard]] Marks marks(std::size_t block, int role) const {
    const auto base = block * static_cast<std::size_t>(pipeline::profile_words_of_block(shape_));
    const Marks found(words_.data() + base + static_cast<std::size_t>(role * pipeline::profile_words));
    // A consumer warpgroup without a tile has no timestamps; the producer always has an end.
    if (!found.has(Moment::started) || (is_loader(role) && !found.has(Moment::finished))) {
      throw Error(ErrorCode::internal, fmt::format("block {} left no timestamps of role {}", block, role));
    }
    return found;
  }

 private:
  std::span<const std::uint64_t> words_;
  const pipeline::Shape& shape_;
};

double clock_ghz(const Reader& reader) {
  std::vector<double> rates;
  for (std::size_t block = 0; block < reader.blocks(); ++block) {
    for (int role = 0; role < reader.roles(); ++role) {
      const Marks marks = reader.marks(block, role);
      if (marks.last_ns() > marks.first_ns()) {
        rates.push_back(static_cast<double>(marks.cycles(Moment::finished) - marks.cycles(Moment::started)) /
                        static_cast<double>(marks.last_ns() - marks.first_ns()));
      }
    }
  }
  return rates.empty() ? 1 : median(rates);
}

struct Step {
  Moment from;
  Moment to;
  const char* name;
};

constexpr std::array math_steps{
    Step{Moment::started, Moment::ready, "start-up"}, Step{Moment::ready, Moment::first_slot, "first loads"},
    Step{Moment::first_slot, Moment::drained, "main loop"}, Step{Moment::drained, Moment::merged, "exchange"},
    Step{Moment::merged, Moment::finished, "epilogue"}};
constexpr std::array loader_steps{Step{Moment::started, Moment::ready, "start-up"},
                                  Step{Moment::ready, Moment::finished, "loads"}};

/// The median, over all blocks, of the time at which a role reached a moment. It is in cycles from its block's start;
/// negative when no block reached it.
double median_cycles(const Reader& reader, int role, Moment moment) {
  std::vector<double> cycles;
  for (std::size_t block = 0; block < reader.blocks(); ++block) {
    std::uint64_t start = std::numeric_limits<std::uint64_t>::max();
    for (int other = 0; other < reader.roles(); ++other) {
      start = std::min(start, reader.marks(block, other).cycles(Moment::started));
    }
    const Marks marks = reader.marks(block, role);
    if (marks.has(moment)) {
      cycles.push_back(static_cast<double>(marks.cycles(moment) - start));
    }
  }
  return cycles.empty() ? -1 : median(cycles);
}

RoleTimeline role_timeline(const Reader& reader, int role, double ghz) {
  RoleTimeline timeline;
  timeline.role = reader.is_loader(role) ? "loader" : fmt::format("math {}", role);
  double at = median_cycles(reader, role, Moment::started);
  const std::span<const Step> steps =
      reader.is_loader(role) ? std::span<const Step>(loader_steps) : std::span<const Step>(math_steps);
  for (const Step& step : steps) {
    const double end = median_cycles(reader, role, step.to);
    if (end >= at) {  // a moment without a timestamp belongs to the next step
      timeline.segments.push_back({step.name, at / ghz * 1e-3, end / ghz * 1e-3});
      at = end;
    }
  }
  return timeline;
}

std::vector<BlockSpan> block_spans(const Reader& reader) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t block = 0; block < reader.blocks(); ++block) {
    auto& [begin, end] = spans.emplace_back(std::numeric_limits<std::uint64_t>::max(), 0);
    for (int role = 0; role < reader.roles(); ++role) {
      begin = std::min(begin, reader.marks(block, role).first_ns());
      end = std::max(end, reader.marks(block, role).last_ns());
    }
    first = std::min(first, begin);
  }
  std::vector<BlockSpan> found;
  for (const auto& [begin, end] : spans) {
    found.push_back({static_cast<double>(begin - first) * 1e-3, static_cast<double>(end - first) * 1e-3});
  }
  return found;
}

}  // namespace

Timeline read_timeline(std::span<const std::uint64_t> words, const pipeline::Shape& shape) {
  const Reader reader(words, shape);
  if (reader.blocks() == 0) {
    throw Error(ErrorCode::internal, "there are no timestamps to read");
  }
  Timeline timeline;
  timeline.clock_ghz = clock_ghz(reader);
  for (int role = 0; role < reader.roles(); ++role) {
    timeline.roles.push_back(role_timeline(reader, role, timeline.clock_ghz));
  }
  timeline.blocks = block_spans(reader);
  for (const BlockSpan& block : timeline.blocks) {
    timeline.span_us = std::max(timeline.span_us, block.end_us);
  }
  return timeline;
}

}  // namespace thresher::arena
