#pragma once
/// What the ledger keeps and the report shows.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "arena/results/gate.hpp"
#include "arena/results/shard.hpp"
#include "arena/results/verdict.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

/// What built this binary.
struct Toolchain {
  std::string thresher;  ///< its version
  std::string compiler;  ///< "GCC 12.2.0"
  std::string build_type;
  std::string flags;
  std::string onednn;
  std::string sqlite;
};

/// What was run, and on what: every row of the ledger carries one, and hands it on as it was written.
struct Context {
  std::string source_hash;
  std::string toolchain;  ///< JSON object, to_json(const Toolchain&)
  std::string machine;    ///< JSON object, to_json(const Machine&)
  bool operator==(const Context&) const = default;
};

/// One problem in one mode. Without rounds only `problem`, `mode` and `not_measured` mean anything.
struct Measurement {
  std::string problem;
  TimingMode mode = TimingMode::cold_burst;
  std::string not_measured;
  int rounds = 0;
  Estimate baseline_us;
  Estimate contestant_us;
  Estimate speedup;  ///< baseline over contestant
  Estimate self;     ///< baseline over baseline: the noise
  std::string comparison;
  double floor_us = 0;         ///< no kernel can be faster; 0 unknown
  double sustained_us = 0;     ///< the same at the rates measured on the day; 0 unknown
  std::string samples = "{}";  ///< JSON object: every sample in us, telemetry, rotation
};

/// What a pitch claims.
struct ClaimRecord {
  std::string title;
  double low = 1;
  double high = 1;
};

/// What the panel said of a pitch's speed-up, where it could say something.
struct PanelRecord {
  double claimed_low = 1;
  double claimed_high = 1;
  double predicted = 1;
  double predicted_low = 1;
  double predicted_high = 1;
};
/// What the clock was, and what it saw of the machine's.
struct ClockSummary {
  std::string clock;  ///< its name; empty: nobody told
  std::optional<double> lowest_mhz{};
  std::optional<double> highest_mhz{};
  std::set<std::string> throttle_reasons{};
};

/// One contestant on one suite.
struct Entry {
  std::int64_t ordinal = 0;  ///< place in the run's list
  std::string suite;
  std::string contestant;
  std::string baseline;                ///< equal to `contestant` for a baseline
  std::string pitch;                   ///< JSON object, empty without a pitch
  std::optional<ClaimRecord> claim{};  ///< of the pitch
  Verdict verdict = Verdict::not_judged;
  std::string sentence;
  ClockSummary clocks;
  std::string started;  ///< UTC, ISO 8601
  std::string ended;
  Context context;
  std::vector<GateResult> gates;
  std::vector<Measurement> measurements;
  std::vector<ModeSpeedup> speedups;  ///< of each deciding mode; empty when there are none

  [[nodiscard]] bool is_baseline() const { return contestant == baseline; }
};

/// "accepted", "failed at correct": as ledgers keep it.
[[nodiscard]] std::string plain_verdict(const Entry& entry);
/// The same for people: an accepted contestant's says how many gates were judged, "accepted (6 of 8 gates judged)".
[[nodiscard]] std::string verdict_text(const Entry& entry);

/// What was predicted of one contestant on one problem, frozen before anything of it was timed.
struct PredictionRecord {
  std::int64_t ordinal = 0;  ///< of the entry it is about
  std::string suite;
  std::string contestant;
  std::string problem;
  std::optional<double> predicted_us;    ///< of a call with cold inputs on a rested machine; empty: nobody can say
  std::string why;                       ///< what bounds it, or why there is no prediction
  std::string planner = "{}";            ///< JSON object: the device table and calibration that were asked
  std::string panel;                     ///< JSON object: the panel's opinion of the pitch; empty without one
  std::optional<PanelRecord> opinion{};  ///< of the panel
  std::string frozen;                    ///< UTC, ISO 8601
  std::string hash;                      ///< of the ledger's chain up to here; empty until it is in a ledger
};

struct RunRecord {
  std::int64_t id = 0;
  std::string key;  ///< run_key
  std::string started;
  std::string ended;  ///< empty while unfinished
  std::string device;
  std::uint64_t seed = 0;
  std::string arguments = "{}";        ///< JSON object: suites and pitches as they were read, options
  std::vector<std::string> suites;     ///< their names
  std::optional<ShardRecord> shard{};  ///< that it is
  std::optional<MergeRecord> merge{};  ///< that it comes from
  std::string hash;                    ///< of the ledger's chain at its end; empty while unfinished
  Context context;                     ///< of a merged run its first shard's; every entry has its own
  std::vector<PredictionRecord> predictions;
  std::vector<Entry> entries;
};

/// What makes two runs the same: suites, pitches, device, sources, options.
[[nodiscard]] std::string run_key(const RunRecord& run);

/// The runs without the shards that were merged into one of them: no time is to count twice.
[[nodiscard]] std::vector<RunRecord> without_merged_shards(std::vector<RunRecord> runs);

/// Now, as the ledger writes it.
[[nodiscard]] std::string utc_now();

}  // namespace thresher::arena
