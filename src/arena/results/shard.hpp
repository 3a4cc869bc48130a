#pragma once
/// A tournament in parts: each shard runs on one machine, and their runs are merged into one.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::arena {

inline constexpr int max_shards = 4096;

/// 1 <= number <= count <= max_shards.
struct Shard {
  int number = 1;
  int count = 1;
  bool operator==(const Shard&) const = default;
};

/// Parses "2/3"; empty for any other text.
[[nodiscard]] std::optional<Shard> parse_shard(std::string_view text) noexcept;
/// "2/3".
[[nodiscard]] std::string label(Shard shard);

/// One contestant on one suite, in the list that every shard of a tournament derives equally.
struct MatchRecord {
  std::string suite;
  std::string contestant;
  std::string baseline;  ///< equal to `contestant` for a baseline's own row
  int shard = 1;         ///< whose entry counts in the whole tournament
  [[nodiscard]] bool is_baseline() const { return contestant == baseline; }
  bool operator==(const MatchRecord&) const = default;
};

/// A shard's record of its tournament.
struct ShardRecord {
  Shard shard;
  std::vector<MatchRecord> matches;  ///< of the whole tournament; a match's place is its entry's ordinal
};

/// The record of a shard in a merged run.
struct MergedShard {
  int number = 1;
  std::string device;
  std::string machine;  ///< JSON object, to_json(const Machine&)
  std::string started;  ///< UTC, ISO 8601
  std::string ended;
  std::string hash;                   ///< of the source ledger's chain, at the shard's end
  std::vector<std::int64_t> entries;  ///< ordinals of its entries
};

/// A merged run's record of its shards.
struct MergeRecord {
  int count = 1;
  std::vector<MergedShard> shards;  ///< those with at least one entry, by number
  std::vector<int> missing;         ///< those without entries here
  /// The shard of the entry; null when it has none.
  [[nodiscard]] const MergedShard* shard_of(std::int64_t ordinal) const;
};

/// Deals the matches to `count` shards, in their order and in runs of similar cost, so that few shards need a suite's
/// baseline row. That row counts in the shard of its first match. `costs` has one value for each match, more than 0, in
/// any unit.
void deal(std::span<MatchRecord> matches, std::span<const double> costs, int count);

/// Places of the matches that a shard runs, ascending: its dealt matches, and the own row of each of their baselines.
/// Compared times therefore come from one machine.
[[nodiscard]] std::vector<std::size_t> matches_held(std::span<const MatchRecord> matches, int shard);

/// Numbers for people, ascending: "1, 3-5".
[[nodiscard]] std::string ranges(std::span<const int> numbers);

}  // namespace thresher::arena
