#pragma once
/// A tournament in parts: each shard is held on one machine, and the runs of all of them are merged into one.
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

/// Of "2/3"; nothing of a text that is no such thing.
[[nodiscard]] std::optional<Shard> parse_shard(std::string_view text) noexcept;
/// "2/3".
[[nodiscard]] std::string label(Shard shard);

/// One contestant on one suite, in the list that every shard of a tournament derives alike.
struct MatchRecord {
  std::string suite;
  std::string contestant;
  std::string baseline;  ///< equal to `contestant` for a baseline's own row
  int shard = 1;         ///< whose entry counts in the whole tournament
  [[nodiscard]] bool is_baseline() const { return contestant == baseline; }
  bool operator==(const MatchRecord&) const = default;
};

/// What the run of a shard keeps of its tournament.
struct ShardRecord {
  Shard shard;
  std::vector<MatchRecord> matches;  ///< of the whole tournament; a match's place is its entry's ordinal
};

/// A shard in the run that it was merged into.
struct MergedShard {
  int number = 1;
  std::string device;
  std::string machine;  ///< JSON object, to_json(const Machine&)
  std::string started;  ///< UTC, ISO 8601
  std::string ended;
  std::string hash;                   ///< of the chain of the ledger it came from, at the shard's end
  std::vector<std::int64_t> entries;  ///< ordinals of those that came from it
};

/// What a merged run keeps of the shards that it was merged from.
struct MergeRecord {
  int count = 1;
  std::vector<MergedShard> shards;  ///< that held at least one of the entries, by number
  std::vector<int> missing;         ///< whose entries are not there
  /// Whose the entry is; null: nobody's.
  [[nodiscard]] const MergedShard* shard_of(std::int64_t ordinal) const;
};

/// Deals the matches to `count` shards, in their order and in runs of about the same cost, so that a suite's matches
/// need their baseline's own row in few shards. That row counts in the shard of the first match that is held against
/// it. `costs` has one for each match, more than 0, in any unit.
void deal(std::span<MatchRecord> matches, std::span<const double> costs, int count);

/// Places of the matches that a shard holds: those that it was dealt, and the own row of every baseline that one of
/// them is held against, so that whatever is compared was measured on one machine. Ascending.
[[nodiscard]] std::vector<std::size_t> matches_held(std::span<const MatchRecord> matches, int shard);

/// Numbers for people, ascending: "1, 3-5".
[[nodiscard]] std::string ranges(std::span<const int> numbers);

}  // namespace thresher::arena
