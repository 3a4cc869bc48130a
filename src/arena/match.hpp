#pragma once
/// One contestant on one suite: the gates it passes through.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arena/contestant.hpp"
#include "arena/gate.hpp"
#include "arena/pitch.hpp"
#include "arena/progress.hpp"
#include "arena/record.hpp"
#include "arena/rig.hpp"
#include "arena/suite.hpp"
#include "arena/timing.hpp"

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
  std::string left_out{};  ///< which of the suite's problems it is not judged on, and why; empty: none

  std::vector<GateResult> gates{};  ///< judged so far
  std::vector<TimedProblem> timed{};
  std::vector<Measurement> measurements{};
  std::string verdict{};

  [[nodiscard]] bool is_baseline() const { return &contestant == &baseline; }
};

class Gate {
 public:
  virtual ~Gate() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual GateResult judge(Match& match) const = 0;
};

/// In the order of gate_names().
[[nodiscard]] std::vector<std::unique_ptr<Gate>> standard_gates();

/// Passes the match through the gates, to the first that fails; the rest are skipped. Fills everything of the entry but
/// its ordinal.
[[nodiscard]] Entry hold_match(Match& match, const std::vector<std::unique_ptr<Gate>>& gates, const Context& context);

}  // namespace thresher::arena
