// The gates in their order, and those without a file of their own.
#include <fmt/format.h>

#include "arena/gates/audited.hpp"
#include "arena/gates/correctness.hpp"
#include "arena/gates/honest.hpp"
#include "arena/gates/match.hpp"
#include "arena/gates/race_free.hpp"
#include "arena/gates/timed.hpp"
#include "arena/gates/verdict.hpp"
#include "arena/gates/verified_calls.hpp"

namespace thresher::arena {
namespace {

class FeasibleGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::feasible; }
  [[nodiscard]] GateResult judge(Match& match) const override {
    GateResult result = ask_each(
        match, kind(), [&](const Problem& problem) { return match.contestant.feasible(problem, match.rig.memory()); });
    if (!match.left_out.empty()) {
      result.sentence += "; " + match.left_out;
    }
    return result;
  }

  /// The first failure, or the answer to the last problem.
  static GateResult ask_each(const Match& match, GateKind gate, const std::function<Answer(const Problem&)>& ask) {
    GateResult result{gate, Outcome::passed, ""};
    for (const Problem& problem : match.suite.problems) {
      const Answer answer = ask(problem);
      result.sentence = answer.sentence;
      result.evidence = answer.evidence;
      if (!answer.not_judged.empty()) {
        return {gate, Outcome::not_judged, answer.not_judged, answer.evidence};
      }
      if (!answer.yes) {
        result.outcome = Outcome::failed;
        return result;
      }
    }
    return result;
  }
};

class CompilesGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::compiles; }
  [[nodiscard]] GateResult judge(Match& match) const override {
    return FeasibleGate::ask_each(match, kind(),
                                  [&](const Problem& problem) { return match.contestant.compile(problem); });
  }
};

class CorrectGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::correct; }
  [[nodiscard]] GateResult judge(Match& match) const override {
    bool is_running = false;
    const auto each = [&](std::size_t number, std::size_t total) {
      if (is_running) {
        match.progress.end();
      }
      match.check_time();
      is_running = true;
      match.progress.begin(std::string(name(kind())), fmt::format("{} on {}, trial {} of {}", match.contestant.name(),
                                                                  match.suite.name, number + 1, total));
    };
    // A user kernel is not told the seed of its data; the evidence tells it afterwards.
    const bool is_foreign = match.pitch != nullptr && match.pitch->kernel && !match.is_baseline();
    GateResult result =
        judge_correctness(match.suite, match.contestant, match.rig, is_foreign ? secret_seed() : match.seed, each,
                          {.baseline = &match.baseline,
                           .is_timed = match.suite.timed,
                           .timing = match.timing,
                           .calls_of = [&match](const Problem& problem) { return calls_in_a_sample(match, problem); }});
    match.progress.end();
    return result;
  }
};

class VerdictGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::verdict; }
  [[nodiscard]] GateResult judge(Match& match) const override {
    if (match.is_baseline()) {
      match.verdict = Verdict::baseline;
      return {kind(), Outcome::skipped, "the others are measured against it"};
    }
    if (!match.suite.timed) {
      match.verdict = Verdict::not_timed;
      return {kind(), Outcome::skipped, fmt::format("correct; the suite {} is not timed", match.suite.name)};
    }
    const GateResult* const timed = find_gate(match.gates, GateKind::timed);
    if (timed != nullptr && timed->outcome == Outcome::passed) {
      match.speedups = deciding_speedups(match);
    }
    if (match.speedups.empty()) {
      match.verdict = Verdict::not_judged;
      return {kind(), Outcome::not_judged,
              "without times: " + (timed == nullptr ? "none were taken" : timed->sentence)};
    }
    const Decision decision = reach_verdict(match.speedups, match.gates, match.pitch, match.baseline.name());
    match.verdict = decision.verdict;
    return {kind(), outcome_of(decision.verdict), decision.sentence, VerdictEvidence{match.speedups}};
  }

 private:
  static Outcome outcome_of(Verdict verdict) {
    return verdict == Verdict::accepted   ? Outcome::passed
           : verdict == Verdict::rejected ? Outcome::failed
                                          : Outcome::not_judged;
  }
};

}  // namespace

std::vector<std::unique_ptr<Gate>> standard_gates() {
  std::vector<std::unique_ptr<Gate>> gates;
  gates.push_back(std::make_unique<FeasibleGate>());
  gates.push_back(std::make_unique<CompilesGate>());
  gates.push_back(make_audited_gate());
  gates.push_back(make_race_free_gate());
  gates.push_back(std::make_unique<CorrectGate>());
  gates.push_back(make_honest_gate());
  gates.push_back(make_timed_gate());
  gates.push_back(std::make_unique<VerdictGate>());
  return gates;
}

}  // namespace thresher::arena
