#include "arena/user_kernels/sandbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arena/results/evidence_json.hpp"
#include "arena/results/record_json.hpp"
#include "arena/user_kernels/wire.hpp"
#include "arena/user_kernels/worker_process.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr double compiling_limit_s = 120;

/// The worker, and what it has said of the whole match so far.
class Worker {
 public:
  Worker(const std::vector<std::string>& command, const Match& match)
      : process_(command, request(match)), limit_s_(match.pitch->kernel->time_limit_s) {}

  /// What the worker makes of one gate. Its other messages until then are progress.
  GateResult result_of(GateKind gate, Match& match) {
    std::string doing;
    // What is done before it runs takes the compiler's time, not the kernel's.
    const double limit_s = traits(gate).needs_a_run ? limit_s_ : std::max(limit_s_, compiling_limit_s);
    while (auto message = process_.next(limit_s)) {
      if (message->contains("gate")) {
        finish_piece(match);
        return take(*message, match);
      }
      if (message->contains("begin")) {
        doing = message->at("what");
        match.progress.begin(message->at("begin"), doing);
        is_in_piece_ = true;
      } else if (message->contains("end")) {
        finish_piece(match);
      } else if (message->contains("failed")) {
        return {gate, Outcome::failed, message->at("failed")};
      }
    }
    finish_piece(match);
    return {gate, Outcome::failed,
            fmt::format("the kernel's process {}{}", process_.how_it_ended(), doing.empty() ? "" : " at " + doing)};
  }

  [[nodiscard]] const ClockSummary& clocks() const { return clocks_; }

 private:
  static nlohmann::json request(const Match& match) {
    return {{"suite", {{"name", match.suite.name}, {"text", match.suite.text}}},
            {"pitch", {{"file", match.pitch->file}, {"text", match.pitch->text}}},
            {"kernel_text", match.pitch->kernel->text},
            {"device", match.rig.name()},
            {"seed", match.seed},
            {"seconds", match.timing.budget_s}};
  }

  void finish_piece(Match& match) {
    if (is_in_piece_) {
      match.progress.end();
      is_in_piece_ = false;
    }
  }

  GateResult take(const nlohmann::json& message, Match& match) {
    match.verdict = verdict_from_text(message.at("verdict").get<std::string>());
    clocks_ = clocks_from_json(message.at("clocks"));
    for (const nlohmann::json& measurement : message.at("measurements")) {
      match.measurements.push_back(measurement_from_wire(measurement));
    }
    GateResult gate = gate_from_wire(message.at("gate"));
    if (gate.kind == GateKind::verdict) {
      match.speedups = speedups_of(gate.evidence);
    }
    return gate;
  }

  WorkerProcess process_;
  double limit_s_;
  bool is_in_piece_ = false;
  ClockSummary clocks_;
};

/// A gate that is judged by the worker.
class SandboxedGate final : public Gate {
 public:
  SandboxedGate(GateKind kind, Worker& worker) : kind_(kind), worker_(worker) {}
  [[nodiscard]] GateKind kind() const override { return kind_; }
  [[nodiscard]] GateResult judge(Match& match) const override {
    try {
      return worker_.result_of(kind_, match);
    } catch (const nlohmann::json::exception&) {
      return {kind_, Outcome::failed, "the kernel's process said something that is no answer"};
    }
  }

 private:
  GateKind kind_;
  Worker& worker_;
};

}  // namespace

Entry hold_match_in_sandbox(Match& match, const std::vector<std::string>& worker, const Context& context) {
  Worker sandboxed(worker, match);
  std::vector<std::unique_ptr<Gate>> gates;
  for (const GateTraits& gate : all_gates) {
    gates.push_back(std::make_unique<SandboxedGate>(gate.kind, sandboxed));
  }
  Entry entry = hold_match(match, gates, context);
  entry.clocks = sandboxed.clocks();
  return entry;
}

}  // namespace thresher::arena::user_kernels
