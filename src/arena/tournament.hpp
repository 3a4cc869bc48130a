#pragma once
/// A tournament: contestants on suites, one after another, each into the ledger as soon as it is through.
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

/// What a pitch's call may take where neither the pitch nor the host says.
inline constexpr double usual_call_s = 60;

struct TournamentOptions {
  std::vector<Suite> suites;          ///< not empty
  std::vector<Pitch> pitches;         ///< empty: every strategy that is made for a suite's formats competes on it
  std::optional<std::uint64_t> seed;  ///< empty: a random one
  double seconds = 6;                 ///< for timing one contestant on one problem
  /// That every match may take, on all problems of its suite; empty: one with a kernel from outside several times what
  /// it usually takes, all others as long as they like.
  std::optional<double> match_seconds{};
  double call_seconds = usual_call_s;  ///< that one call of a kernel from outside may take at most
  /// Command whose process a kernel from outside runs in (user_kernels/served/call_server.hpp).
  std::vector<std::string> server = {"/proc/self/exe", "serve-calls"};
  std::optional<Shard> shard{};  ///< the part to be held; it needs a seed, or `resume`; empty: all of it
  bool resume = false;           ///< go on with the unfinished tournament that is otherwise the same
  Forecaster forecaster{};       ///< who predicts times, before the first of them is measured
};

struct TournamentResult {
  RunRecord run;
  /// Why some of it is not in the ledger; empty when all is. The results stand nevertheless.
  std::string ledger_problem;

  /// A rejected pitch is a result; a gate that failed before is a failure.
  [[nodiscard]] bool any_gate_failed() const;
};

/// Throws Error for contestants that do not exist, and for kernels that this machine has no tools for: to be asked
/// before a ledger is made.
void check_field(const TournamentOptions& options, const Device& device, const Registry& registry);

/// Throws Error for contestants that do not exist and for a ledger that cannot be begun, before anything is run.
[[nodiscard]] TournamentResult hold_tournament(const TournamentOptions& options, Rig& rig, const Registry& registry,
                                               Ledger& ledger, Progress& progress);

}  // namespace thresher::arena
