#include "arena/gates/match.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/gates/verified_calls.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// Resets contestants that keep state between calls, before and after a gate that runs them.
class FreshStart {
 public:
  FreshStart(const Match& match, bool is_run) : match_(match), is_run_(is_run) { start_anew(); }
  FreshStart(const FreshStart&) = delete;
  FreshStart& operator=(const FreshStart&) = delete;
  ~FreshStart() { start_anew(); }

 private:
  void start_anew() const {
    if (is_run_) {
      match_.contestant.start_anew();
      match_.baseline.start_anew();
    }
  }

  const Match& match_;
  bool is_run_;
};

}  // namespace

ClockSummary clock_summary(const Match& match) {
  ClockSummary summary{std::string(match.rig.clock().name())};
  for (const TimedProblem& timed : match.timed) {
    for (const ModeTimes& mode : timed.times.modes) {
      for (const Telemetry& telemetry : mode.telemetry) {
        summary.throttle_reasons.insert(telemetry.throttle_reasons.begin(), telemetry.throttle_reasons.end());
        if (const auto mhz = telemetry.clock_mhz) {
          summary.lowest_mhz = std::min(*mhz, summary.lowest_mhz.value_or(*mhz));
          summary.highest_mhz = std::max(*mhz, summary.highest_mhz.value_or(*mhz));
        }
      }
    }
  }
  return summary;
}

std::size_t calls_in_a_sample(Match& match, const Problem& problem) {
  const auto known = match.calls_in_samples.find(label(problem));
  if (known != match.calls_in_samples.end()) {
    return known->second;
  }
  const bool is_alone = match.is_baseline() || !match.baseline.unsupported_reason(problem).empty();
  const std::size_t calls =
      estimated_calls(problem, match.suite.distributions.front(), is_alone ? nullptr : &match.contestant,
                      is_alone ? match.contestant : match.baseline, match.rig, match.environment, secret_seed());
  return match.calls_in_samples[label(problem)] = calls;
}

TimingOptions timing_options(const Suite& suite, double seconds) {
  constexpr double patience = 4;
  return {.budget_s = seconds, .patience = patience, .warm = suite.warm, .check_time = {}};
}

GateResult judge_gate(const Gate& gate, Match& match) {
  const bool needs_a_run = traits(gate.kind()).needs_a_run;
  const std::string obstacle = match.contestant.cannot_run();
  if (needs_a_run && !obstacle.empty()) {
    if (gate.kind() == GateKind::verdict) {
      match.verdict = Verdict::not_judged;
    }
    return {gate.kind(), Outcome::not_judged, obstacle};
  }
  const FreshStart fresh(match, needs_a_run);
  GateResult result{gate.kind(), Outcome::failed, ""};
  try {
    match.check_time();
    result = gate.judge(match);
  } catch (const Error& error) {
    result.sentence = error.what();
  } catch (const MatchOver& over) {
    match.is_over = true;
    result.outcome = over.is_contestants() ? Outcome::failed : Outcome::not_judged;
    result.sentence = over.what();
  }
  std::string changed = match.environment.restore();
  if (std::string on_device = needs_a_run ? match.rig.restore() : ""; changed.empty()) {
    changed = std::move(on_device);
  }
  if (!changed.empty() && result.outcome != Outcome::failed && !match.is_baseline()) {
    result.outcome = Outcome::failed;
    result.sentence = std::move(changed);
  }
  return result;
}

std::string unsupported_reason(const Suite& suite, const Contestant& contestant) {
  std::string first_obstacle;
  for (const Problem& problem : suite.problems) {
    std::string obstacle = contestant.unsupported_reason(problem);
    if (obstacle.empty() && !suite.timed) {
      return "";
    }
    if (first_obstacle.empty()) {
      first_obstacle = std::move(obstacle);
    }
  }
  return first_obstacle;
}

std::string leave_out_other_formats(Suite& suite, const Contestant& contestant) {
  std::string first_obstacle;
  std::vector<Problem> taken;
  for (const Problem& problem : suite.problems) {
    std::string obstacle = contestant.unsupported_reason(problem);
    if (obstacle.empty()) {
      taken.push_back(problem);
    } else if (first_obstacle.empty()) {
      first_obstacle = std::move(obstacle);
    }
  }
  if (suite.timed || taken.empty() || first_obstacle.empty()) {
    return "";
  }
  const std::size_t all = suite.problems.size();
  suite.problems = std::move(taken);
  return fmt::format("judged on {} of the suite's {} problems: {}", suite.problems.size(), all, first_obstacle);
}

Entry hold_match(Match& match, const std::vector<std::unique_ptr<Gate>>& gates, const Context& context) {
  Entry entry;
  entry.suite = match.suite.name;
  entry.contestant = match.contestant.name();
  entry.baseline = match.baseline.name();
  if (match.pitch != nullptr) {
    entry.pitch = to_json(*match.pitch);
    entry.claim = {match.pitch->title, match.pitch->claim.speedup_low, match.pitch->claim.speedup_high};
  }
  entry.context = context;
  entry.started = utc_now();
  std::string why_skipped;
  if (entry.sentence = unsupported_reason(match.suite, match.contestant); !entry.sentence.empty()) {
    match.verdict = Verdict::unsupported_format;
    why_skipped = name(match.verdict);
  }
  for (const auto& gate : gates) {
    const GateTraits& about = traits(gate->kind());
    GateResult result =
        why_skipped.empty() ? judge_gate(*gate, match) : GateResult{about.kind, Outcome::skipped, why_skipped};
    if (result.outcome == Outcome::failed && about.ends_the_match) {
      why_skipped = fmt::format("failed at {}", about.name);
      match.verdict = Verdict::failed;
      entry.sentence = result.sentence;
    } else if (match.is_over && why_skipped.empty()) {
      why_skipped = "the match's time is over";
      match.verdict = Verdict::not_judged;
      entry.sentence = result.sentence;
    }
    match.gates.push_back(std::move(result));
  }
  match.contestant.leave();
  if (why_skipped.empty()) {
    entry.sentence = match.gates.back().sentence;
  }
  entry.verdict = match.verdict;
  entry.gates = match.gates;
  entry.measurements = match.measurements;
  entry.speedups = match.speedups;
  entry.clocks = clock_summary(match);
  entry.ended = utc_now();
  return entry;
}

}  // namespace thresher::arena
