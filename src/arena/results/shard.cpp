#include "arena/results/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace thresher::arena {
namespace {

/// A baseline's own row: its suite and its name.
using RowName = std::pair<std::string_view, std::string_view>;

RowName own_row(const MatchRecord& baseline) { return {baseline.suite, baseline.contestant}; }
RowName row_it_meets(const MatchRecord& match) { return {match.suite, match.baseline}; }

}  // namespace

std::optional<Shard> parse_shard(std::string_view text) noexcept {
  unsigned number = 0;
  unsigned count = 0;
  const char* const end = text.data() + text.size();
  const auto [slash, no_number] = std::from_chars(text.data(), end, number);
  if (no_number != std::errc() || slash == end || *slash != '/') {
    return std::nullopt;
  }
  const auto [stop, no_count] = std::from_chars(slash + 1, end, count);
  if (no_count != std::errc() || stop != end || number < 1 || number > count ||
      count > static_cast<unsigned>(max_shards)) {
    return std::nullopt;
  }
  return Shard{static_cast<int>(number), static_cast<int>(count)};
}

std::string label(Shard shard) { return fmt::format("{}/{}", shard.number, shard.count); }

const MergedShard* MergeRecord::shard_of(std::int64_t ordinal) const {
  const auto found = std::find_if(shards.begin(), shards.end(), [&](const MergedShard& shard) {
    return std::find(shard.entries.begin(), shard.entries.end(), ordinal) != shard.entries.end();
  });
  return found == shards.end() ? nullptr : &*found;
}

void deal(std::span<MatchRecord> matches, std::span<const double> costs, int count) {
  std::map<RowName, const MatchRecord*> first_against;
  for (const MatchRecord& match : matches) {
    if (!match.is_baseline()) {
      first_against.emplace(row_it_meets(match), &match);
    }
  }
  const auto goes_with_another = [&](const MatchRecord& match) {
    return match.is_baseline() && first_against.contains(own_row(match));
  };
  double whole = 0;
  for (std::size_t place = 0; place < matches.size(); ++place) {
    whole += goes_with_another(matches[place]) ? 0 : costs[place];
  }
  double before = 0;
  for (std::size_t place = 0; place < matches.size(); ++place) {
    if (!goes_with_another(matches[place])) {
      const double middle = (before + costs[place] / 2) / whole;
      matches[place].shard = std::min(count, 1 + static_cast<int>(middle * count));
      before += costs[place];
    }
  }
  for (MatchRecord& match : matches) {
    if (goes_with_another(match)) {
      match.shard = first_against.at(own_row(match))->shard;
    }
  }
}

std::vector<std::size_t> matches_held(std::span<const MatchRecord> matches, int shard) {
  std::set<RowName> met;
  for (const MatchRecord& match : matches) {
    if (match.shard == shard && !match.is_baseline()) {
      met.insert(row_it_meets(match));
    }
  }
  std::vector<std::size_t> held;
  for (std::size_t place = 0; place < matches.size(); ++place) {
    const MatchRecord& match = matches[place];
    if (match.shard == shard || (match.is_baseline() && met.contains(own_row(match)))) {
      held.push_back(place);
    }
  }
  return held;
}

std::string ranges(std::span<const int> numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[first]);
    if (last > first) {
      text += fmt::format("{}{}", last == first + 1 ? ", " : "-", numbers[last]);
    }
    first = last + 1;
  }
  return text;
}

}  // namespace thresher::arena
