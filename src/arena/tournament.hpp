#pragma once
/// A tournament: contestants on suites, one after another. Each goes into the ledger as soon as it is done.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arena/contestants/registry.hpp"
#include "arena/gates/match.hpp"
#include "arena/ledger/ledger.hpp"
#include "arena/pitches/pitch.hpp"
#include "arena/predictions/predictions.hpp"
#include "arena/rig/rig.hpp"
#include "arena/suites/suite.hpp"

namespace thresher::arena {

/// The limit of a pitch's call where neither the pitch nor the host sets one.
inline constexpr double usual_call_s = 60;

struct TournamentOptions {
  std::vector<Suite> suites;          ///< not empty
  std::vector<Pitch> pitches;         ///< empty: every strategy that supports a suite's formats competes on it
  std::optional<std::uint64_t> seed;  ///< empty: a random one
  double seconds = 6;                 ///< for timing one contestant on one problem
  /// The limit of every match, over all problems of its suite. Empty: several times its usual time for a match with a
  /// user kernel, no limit for others.
  std::optional<double> match_seconds{};
  double call_seconds = usual_call_s;  ///< the limit of one call of a user kernel
  /// The command that starts a user kernel's process (user_kernels/served/call_server.hpp).
  std::vector<std::string> server = {"/proc/self/exe", "serve-calls"};
  std::optional<Shard> shard{};  ///< the part to run; it needs a seed, or `resume`; empty: all of it
  bool resume = false;           ///< continue the unfinished tournament that is otherwise equal
  Forecaster forecaster{};       ///< predicts times before any contestant is timed
};

struct TournamentResult {
  RunRecord run;
  /// Why some of it is not in the ledger; empty when all is. The results remain valid.
  std::string ledger_problem;

  /// A rejected pitch is a result; a gate that failed before is a failure.
  [[nodiscard]] bool any_gate_failed() const;
};

/// Throws Error for contestants that do not exist, and for kernels that need a tool which this machine lacks. Call it
/// before making a ledger.
void check_field(const TournamentOptions& options, const Device& device, const Registry& registry);

/// Throws Error for contestants that do not exist and for a ledger that cannot be begun, before anything runs.
[[nodiscard]] TournamentResult hold_tournament(const TournamentOptions& options, Rig& rig, const Registry& registry,
                                               Ledger& ledger, Progress& progress);

}  // namespace thresher::arena
