#pragma once
/// Gate "honest": experiments that a kernel fails only if it fools the harness instead of doing its work.
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

/// How timed calls of a problem are made, so that experiments can be made alike.
struct SamplePattern {
  CallPlan plan;
  std::size_t calls = 1;  ///< in a sample
  double rest_s = 0;      ///< before each
};

struct HonestyOptions {
  std::uint64_t seed = 0;  ///< of the tournament: announced, so that a cheat could know it
  /// A seed that nobody announced. The gate's evidence tells it afterwards.
  std::uint64_t secret_seed = 0;
  /// Weights may be arranged when the contestant is prepared, and must then not change between calls.
  bool weights_are_packed = true;
  /// Whether times matter at all: measuring what the machine can do at best takes seconds.
  bool is_timed = true;
  int calls_before_late_check = 200;
  /// A greater problem is asked about in a smaller shape of the same formats, so that the experiments take seconds. No
  /// limit when 0.
  double max_operations = 0;
  /// What is asked about on a rig; not given: one call at a time, on sets of its own.
  std::function<SamplePattern(const Problem&, Rig&)> pattern_of{};
  /// Asked before every experiment; throws where there is no time for another.
  std::function<void()> check_time{};
  /// How long to wait for work that goes on after a call has returned.
  double wait_s = 0.005;
};

/// All experiments, the first accusation last: the ones after it are not made.
[[nodiscard]] std::vector<ProbeResult> probe_honesty(const Problem& problem, const Contestant& contestant, Rig& rig,
                                                     const HonestyOptions& options);

/// On one of the suite's problems within the limit of operations: where calls are made as timed ones are, one drawn by
/// the secret seed, else the greatest. Without one, on the cheapest in a smaller shape. For its shape on a neighbouring
/// one too. Where a problem cannot tell, on up to two others. A contestant that passed `correct`.
[[nodiscard]] GateResult judge_honesty(const Suite& suite, const Contestant& contestant, Rig& rig,
                                       const HonestyOptions& options);

}  // namespace thresher::arena
