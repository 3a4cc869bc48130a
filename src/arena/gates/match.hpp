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

/// A problem as it was timed.
struct TimedProblem {
  Problem problem;
  Times times;
};

/// What the gates of one contestant share. A gate reads what earlier ones left here.
struct Match {
  const Suite& suite;  ///< with the problems that the contestant is judged on
  const Contestant& contestant;
  const Contestant& baseline;  ///< the same object when the contestant is the baseline
  const Pitch* pitch;          ///< null without one
  Rig& rig;
  std::uint64_t seed;
  TimingOptions timing;
  Progress& progress;
  std::string left_out{};             ///< which of the suite's problems it is not judged on, and why; empty: none
  const Entry* baselines_row{};       ///< what the baseline's own match came to; null: it had none before this one
  std::shared_ptr<MatchTime> time{};  ///< how long it may take; null: as long as it likes

  std::vector<GateResult> gates{};  ///< judged so far
  std::vector<TimedProblem> timed{};
  std::vector<Measurement> measurements{};
  std::vector<ModeSpeedup> speedups{};  ///< of each deciding mode
  Verdict verdict = Verdict::not_judged;
  Environment environment{};                              ///< before anything of the contestant ran
  std::map<std::string, std::size_t> calls_in_samples{};  ///< by problem, where it is known

  bool is_over = false;  ///< before all gates were judged: its time is

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

/// How a contestant of the suite is timed, wherever its match is held.
[[nodiscard]] TimingOptions timing_options(const Suite& suite, double seconds);

/// In the order of all_gates.
[[nodiscard]] std::vector<std::unique_ptr<Gate>> standard_gates();

/// One gate, with what holds for all of them: an Error fails it, and a contestant that cannot be run on this machine is
/// not judged where it would have to be. Nor is one whose match takes longer than it may, unless that is its own doing,
/// which fails it.
[[nodiscard]] GateResult judge_gate(const Gate& gate, Match& match);

/// How many calls a sample of the problem takes: found out where it is first asked for, so that all gates make their
/// calls alike. Throws the Error of a call that fails.
[[nodiscard]] std::size_t calls_in_a_sample(Match& match, const Problem& problem);

/// Of everything that was timed so far.
[[nodiscard]] ClockSummary clock_summary(const Match& match);

/// Why the contestant does not compete on the suite, whose formats it is not made for, in one sentence; empty when it
/// does. A timed suite asks for all of its problems, one that is there for correctness for any.
[[nodiscard]] std::string format_obstacle(const Suite& suite, const Contestant& contestant);

/// A suite that is there for correctness judges every contestant on the problems whose formats it is made for; a timed
/// one is taken as a whole, so that all its means are over the same problems. Says which are left out, and why.
[[nodiscard]] std::string leave_out_other_formats(Suite& suite, const Contestant& contestant);

/// Passes the match through the gates, to the first that fails; the rest are skipped, and all are where the contestant
/// does not compete on the suite. Fills everything of the entry but
/// its ordinal.
[[nodiscard]] Entry hold_match(Match& match, const std::vector<std::unique_ptr<Gate>>& gates, const Context& context);

}  // namespace thresher::arena
