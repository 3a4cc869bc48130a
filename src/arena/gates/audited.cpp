#include "arena/gates/audited.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/audit/expectations.hpp"
#include "arena/audit/machine_code.hpp"

namespace thresher::arena {
namespace {

/// The code of all problems, each kernel once.
MachineCode collect(const Match& match) {
  MachineCode all;
  for (const Problem& problem : match.suite.problems) {
    MachineCode code = match.contestant.machine_code(problem);
    if (all.not_judged.empty()) {
      all.not_judged = code.not_judged;
    }
    for (std::size_t i = 0; i < code.kernels.size(); ++i) {
      KernelCode& kernel = code.kernels[i];
      if (i == 0 && match.pitch != nullptr) {
        for (const auto& [key, value] : match.pitch->audit) {
          set_expectation(kernel.expected, key, value);
        }
      }
      if (std::find(all.kernels.begin(), all.kernels.end(), kernel) == all.kernels.end()) {
        all.kernels.push_back(std::move(kernel));
      }
    }
  }
  return all;
}

class AuditedGate final : public Gate {
 public:
  explicit AuditedGate(Disassembler tools) : tools_(std::move(tools)) {}
  [[nodiscard]] GateKind kind() const override { return GateKind::audited; }

  [[nodiscard]] GateResult judge(Match& match) const override {
    const MachineCode code = collect(match);
    GateResult gate{kind(), Outcome::passed, ""};
    AuditedEvidence evidence;
    for (const KernelCode& kernel : code.kernels) {
      const auto [report, why_no_code] = read_code(tools_, kernel);
      const GateResult result = judge_audit(report, kernel.expected, why_no_code).gate(report);
      evidence.kernels.push_back({report, kernel.title, result.sentence});
      add(gate, result, kernel);
    }
    if (gate.outcome == Outcome::passed && (!code.not_judged.empty() || code.kernels.empty())) {
      gate.outcome = Outcome::not_judged;
      gate.sentence = code.not_judged;
    }
    if (gate.outcome == Outcome::passed && code.kernels.size() > 1) {
      gate.sentence = fmt::format("{} kernels; the first: {}", code.kernels.size(), gate.sentence);
    }
    gate.evidence = std::move(evidence);
    return gate;
  }

 private:
  /// The first failure decides, else the first that could not be judged, else the first kernel.
  static void add(GateResult& gate, const GateResult& result, const KernelCode& kernel) {
    const auto weight = [](Outcome outcome) {
      return outcome == Outcome::failed ? 2 : outcome == Outcome::not_judged ? 1 : 0;
    };
    if (gate.sentence.empty() || weight(result.outcome) > weight(gate.outcome)) {
      gate.outcome = result.outcome;
      gate.sentence =
          result.outcome == Outcome::failed ? fmt::format("{}: {}", kernel.title, result.sentence) : result.sentence;
    }
  }

  Disassembler tools_;
};

}  // namespace

std::unique_ptr<Gate> make_audited_gate(Disassembler tools) { return std::make_unique<AuditedGate>(std::move(tools)); }

}  // namespace thresher::arena
