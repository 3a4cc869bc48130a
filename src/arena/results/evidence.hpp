#pragma once
/// The evidence of each gate, in a struct of its own. evidence_json.hpp writes it for the ledger, the report and the
/// wire.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arena/data/distribution.hpp"
#include "arena/results/audit_report.hpp"
#include "arena/results/build_evidence.hpp"
#include "arena/results/finding.hpp"
#include "arena/results/mode_speedup.hpp"
#include "arena/rig/ceilings.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// Evidence of `feasible`.
struct MemoryNeed {
  double needed_bytes = 0;
  double available_bytes = 0;
};

/// Evidence of `compiles`, where it failed.
struct CompilerLog {
  std::string text;
};

/// Evidence of `audited`.
struct AuditedEvidence {
  std::vector<AuditedKernel> kernels;
};

/// The emulator's finding, with its schedule.
struct ScheduleFinding {
  std::string text;
  std::uint64_t seed = 0;
  std::string replay;  ///< the command that reproduces it
};

/// One kernel in the emulator.
struct ScheduledKernel {
  std::string kernel;
  std::vector<std::string> problems;         ///< examined, up to the one with the finding
  std::optional<ScheduleFinding> finding{};  ///< empty: nothing was found
  std::string not_judged{};                  ///< why none was examined; empty when some were
};

/// Evidence of `race-free`.
struct RaceFreeEvidence {
  std::vector<std::uint64_t> seeds;
  std::vector<ScheduledKernel> kernels;
};

/// Evidence of `correct`.
struct CorrectEvidence {
  std::uint64_t seed = 0;
  Numerics numerics = Numerics::exact;  ///< the definition that judged the outputs
  std::vector<TrialResult> trials;
  runtime::Confined confined{};  ///< the confinement of a user kernel's process; empty: it has none
};

/// The finding of an experiment.
struct Accusation {
  std::string cheat;     ///< in a few words, "answers from a cache keyed by pointer"
  std::string sentence;  ///< the experiment and its result
};

/// The first words about an experiment that was impossible, since the kernel rejects a shape that no suite lists.
inline constexpr std::string_view refuses_another_shape = "it refuses the neighbouring shape: ";

/// One experiment by name.
struct ProbeResult {
  std::string probe;
  std::optional<Accusation> accusation;
  std::string not_judged;  ///< why it is inconclusive; empty when it is not
};

/// Evidence of `honest`.
struct HonestEvidence {
  std::string problem;
  std::uint64_t secret_seed = 0;
  std::vector<ProbeResult> probes;
};

/// Counts of checks while one problem was timed, over all roles.
struct ProblemVerification {
  std::string problem;
  std::uint64_t secret_seed = 0;  ///< of its data
  std::size_t samples = 0;
  std::size_t calls = 0;                     ///< in them
  std::size_t calls_looked_at = 0;           ///< calls with some elements checked against the definition
  std::size_t whole_outputs = 0;             ///< calls whose whole outputs were compared with a trusted computation's
  std::size_t inputs_compared = 0;           ///< tensors, byte by byte
  double sampled_s = 0;                      ///< samples and pauses
  double aside_s = 0;                        ///< making inputs and checking outputs
  std::size_t uncounted = 0;                 ///< samples on inputs that had been seen, or almost
  std::optional<Distribution> other_data{};  ///< the other distribution that was timed
  std::size_t waited = 0;                    ///< samples that were dropped because their threads waited for processors
};

/// Evidence of `timed`.
struct TimedEvidence {
  std::string clock;
  Distribution distribution = Distribution::normal;  ///< of the inputs
  double budget_s = 0;
  Ceilings ceilings;
  std::vector<ProblemVerification> verification{};
};

/// Evidence of `verdict`.
struct VerdictEvidence {
  std::vector<ModeSpeedup> modes;
};

/// Evidence of any gate, read from a ledger or another process: a JSON object that is passed on unchanged.
struct RecordedEvidence {
  std::string json;
};

/// The first: no evidence beyond the gate's sentence.
using Evidence = std::variant<std::monostate, MemoryNeed, CompilerLog, BuildEvidence, AuditedEvidence, RaceFreeEvidence,
                              CorrectEvidence, HonestEvidence, TimedEvidence, VerdictEvidence, RecordedEvidence>;

}  // namespace thresher::arena
