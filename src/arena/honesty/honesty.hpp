#pragma once
/// Gate "honest": experiments that fail a kernel only if it fools the harness instead of doing its work.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/operation/call_sets.hpp"
#include "arena/results/gate.hpp"
#include "arena/rig/rig.hpp"
#include "arena/suites/suite.hpp"

namespace thresher::arena {

/// How timed calls of a problem are made, so that experiments can imitate them.
struct SamplePattern {
  CallPlan plan;
  std::size_t calls = 1;  ///< in a sample
  double rest_s = 0;      ///< before each
};

struct HonestyOptions {
  std::uint64_t seed = 0;  ///< of the tournament: public, so that a cheat could know it
  /// A secret seed. The gate's evidence tells it afterwards.
  std::uint64_t secret_seed = 0;
  /// Preparation may prepack weights, which must then not change between calls.
  bool weights_are_packed = true;
  /// Whether times matter: measuring the machine's ceilings takes seconds.
  bool is_timed = true;
  int calls_before_late_check = 200;
  /// A larger problem is replaced by a smaller shape of the same formats, so that experiments take seconds. No limit
  /// when 0.
  double max_operations = 0;
  /// The call pattern on a rig; empty: one call at a time, on sets of its own.
  std::function<SamplePattern(const Problem&, Rig&)> pattern_of{};
  /// Called before every experiment; throws when no time is left.
  std::function<void()> check_time{};
  /// How long to wait for work that continues after a call has returned.
  double wait_s = 0.005;
};

/// Runs the experiments and stops at the first accusation, which comes last.
[[nodiscard]] std::vector<ProbeResult> probe_honesty(const Problem& problem, const Contestant& contestant, Rig& rig,
                                                     const HonestyOptions& options);

/// Judges a contestant that passed `correct`, on one of the suite's problems within the limit of operations. Where
/// calls imitate timed ones, the secret seed draws the problem, else it is the largest. If none is within the limit,
/// the cheapest runs in a smaller shape. A neighbouring shape is tried too. Where a problem is inconclusive, up to two
/// others follow.
[[nodiscard]] GateResult judge_honesty(const Suite& suite, const Contestant& contestant, Rig& rig,
                                       const HonestyOptions& options);

}  // namespace thresher::arena
