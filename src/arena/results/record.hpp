#pragma once
/// The records that the ledger keeps and the report shows.
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

/// The build of this binary.
struct Toolchain {
  std::string thresher;  ///< its version
  std::string compiler;  ///< "GCC 12.2.0"
  std::string build_type;
  std::string flags;
  std::string onednn;
  std::string sqlite;
};

/// The toolchain and the machine of a run: every row of the ledger carries them and passes them on unchanged.
struct Context {
  std::string source_hash;
  std::string toolchain;  ///< JSON object, to_json(const Toolchain&)
  std::string machine;    ///< JSON object, to_json(const Machine&)
  bool operator==(const Context&) const = default;
};

/// One problem in one mode. Without rounds only `problem`, `mode` and `not_measured` are valid.
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

/// A pitch's claim.
struct ClaimRecord {
  std::string title;
  double low = 1;
  double high = 1;
};

/// The panel's prediction of a pitch's speed-up, if it made one.
struct PanelRecord {
  double claimed_low = 1;
  double claimed_high = 1;
  double predicted = 1;
  double predicted_low = 1;
  double predicted_high = 1;
};
/// The clock and the machine's state that it saw.
struct ClockSummary {
  std::string clock;  ///< its name; empty: unknown
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
  std::optional<ClaimRecord> claim{};  ///< the pitch's
  Verdict verdict = Verdict::not_judged;
  std::string sentence;
  ClockSummary clocks;
  std::string started;  ///< UTC, ISO 8601
  std::string ended;
  Context context;
  std::vector<GateResult> gates;
  std::vector<Measurement> measurements;
  std::vector<ModeSpeedup> speedups;  ///< one per deciding mode; empty when there are none

  [[nodiscard]] bool is_baseline() const { return contestant == baseline; }
};

/// "accepted", "failed at correct": as ledgers store it.
[[nodiscard]] std::string plain_verdict(const Entry& entry);
/// The same for people: an accepted contestant's states how many gates were judged, "accepted (6 of 8 gates judged)".
[[nodiscard]] std::string verdict_text(const Entry& entry);

/// The prediction for one contestant on one problem, frozen before the contestant is timed.
struct PredictionRecord {
  std::int64_t ordinal = 0;  ///< of its entry
  std::string suite;
  std::string contestant;
  std::string problem;
  std::optional<double> predicted_us;    ///< a call with cold inputs after a pause; empty: no prediction
  std::string why;                       ///< the bottleneck, or why there is no prediction
  std::string planner = "{}";            ///< JSON object: the device table and the calibration behind it
  std::string panel;                     ///< JSON object: the panel's score of the pitch; empty without one
  std::optional<PanelRecord> opinion{};  ///< the panel's
  std::string frozen;                    ///< UTC, ISO 8601
  std::string hash;                      ///< of the ledger's chain so far; empty until it is in a ledger
};

struct RunRecord {
  std::int64_t id = 0;
  std::string key;  ///< run_key
  std::string started;
  std::string ended;  ///< empty while unfinished
  std::string device;
  std::uint64_t seed = 0;
  std::string arguments = "{}";        ///< JSON object: suites and pitches as read, options
  std::vector<std::string> suites;     ///< their names
  std::optional<ShardRecord> shard{};  ///< when it is a shard
  std::optional<MergeRecord> merge{};  ///< when it was merged
  std::string hash;                    ///< of the ledger's chain at its end; empty while unfinished
  Context context;                     ///< for a merged run, its first shard's; every entry has its own
  std::vector<PredictionRecord> predictions;
  std::vector<Entry> entries;
};

/// Identifies equal runs: suites, pitches, device, sources, options.
[[nodiscard]] std::string run_key(const RunRecord& run);

/// The runs without the shards that were merged into one of them, so that no time counts twice.
[[nodiscard]] std::vector<RunRecord> without_merged_shards(std::vector<RunRecord> runs);

/// Now, as the ledger writes it.
[[nodiscard]] std::string utc_now();

}  // namespace thresher::arena
