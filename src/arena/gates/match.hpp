#pragma once
/// One contestant on one suite: the gates it passes through.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/match_time.hpp"
#include "arena/pitches/pitch.hpp"
#include "arena/progress.hpp"
#include "arena/results/gate.hpp"
#include "arena/results/record.hpp"
#include "arena/rig/environment.hpp"
#include "arena/rig/rig.hpp"
#include "arena/suites/suite.hpp"
#include "arena/timing/timing.hpp"

namespace thresher::arena {

/// A problem with its times.
struct TimedProblem {
  Problem problem;
  Times times;
};

/// The state that the gates of one contestant share. A gate reads the results of earlier ones here.
struct Match {
  const Suite& suite;  ///< only the problems that the contestant is judged on
  const Contestant& contestant;
  const Contestant& baseline;  ///< the same object when the contestant is the baseline
  const Pitch* pitch;          ///< null without one
  Rig& rig;
  std::uint64_t seed;
  TimingOptions timing;
  Progress& progress;
  std::string left_out{};             ///< which of the suite's problems it is not judged on, and why; empty: none
  const Entry* baselines_row{};       ///< the result of the baseline's own match; null: it had none before this one
  std::shared_ptr<MatchTime> time{};  ///< the time limit; null: none

  std::vector<GateResult> gates{};  ///< judged so far
  std::vector<TimedProblem> timed{};
  std::vector<Measurement> measurements{};
  std::vector<ModeSpeedup> speedups{};  ///< of each deciding mode
  Verdict verdict = Verdict::not_judged;
  Environment environment{};                              ///< before any code of the contestant ran
  std::map<std::string, std::size_t> calls_in_samples{};  ///< by problem, where known

  bool is_over = false;  ///< time ran out before all gates were judged

  [[nodiscard]] bool is_baseline() const { return &contestant == &baseline; }
  /// Throws MatchOver when its time is over.
  void check_time() const {
    if (time) {
      time->check();
    }
  }
};

class Gate {
 public:
  virtual ~Gate() = default;
  [[nodiscard]] virtual GateKind kind() const = 0;
  [[nodiscard]] virtual GateResult judge(Match& match) const = 0;
};

/// The timing options of a contestant of the suite, wherever its match runs.
[[nodiscard]] TimingOptions timing_options(const Suite& suite, double seconds);

/// In the order of all_gates.
[[nodiscard]] std::vector<std::unique_ptr<Gate>> standard_gates();

/// Judges one gate, with the rules that all of them share. An Error fails it. It is not judged where this machine
/// cannot run the contestant, or where the match exceeds its time without fault of the contestant.
[[nodiscard]] GateResult judge_gate(const Gate& gate, Match& match);

/// The number of calls in a sample of the problem. The first query measures it, so that all gates make their calls
/// alike. Throws the Error of a call that fails.
[[nodiscard]] std::size_t calls_in_a_sample(Match& match, const Problem& problem);

/// Summarizes the clocks of all timed samples so far.
[[nodiscard]] ClockSummary clock_summary(const Match& match);

/// Why the contestant does not support the suite's formats, in one sentence; empty when it competes. A timed suite
/// needs all of its problems supported, a correctness suite any.
[[nodiscard]] std::string unsupported_reason(const Suite& suite, const Contestant& contestant);

/// Removes the problems whose formats the contestant does not support, in a correctness suite only. A timed suite stays
/// whole, so that all its means cover the same problems. Returns which are left out, and why.
[[nodiscard]] std::string leave_out_other_formats(Suite& suite, const Contestant& contestant);

/// Passes the match through the gates until the first failure; the rest are skipped. All are skipped where the
/// contestant does not compete on the suite. Fills everything of the entry but its ordinal.
[[nodiscard]] Entry hold_match(Match& match, const std::vector<std::unique_ptr<Gate>>& gates, const Context& context);

}  // namespace thresher::arena
