#pragma once
/// What the gates found, each in its own words. evidence_json.hpp writes it for the ledger, the report and the wire.
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

/// Of `feasible`.
struct MemoryNeed {
  double needed_bytes = 0;
  double available_bytes = 0;
};

/// Of `compiles`, where it failed.
struct CompilerLog {
  std::string text;
};

/// Of `audited`.
struct AuditedEvidence {
  std::vector<AuditedKernel> kernels;
};

/// What the emulator found, and the schedule under which it did.
struct ScheduleFinding {
  std::string text;
  std::uint64_t seed = 0;
  std::string replay;  ///< the command that shows it again
};

/// One kernel in the emulator.
struct ScheduledKernel {
  std::string kernel;
  std::vector<std::string> problems;         ///< looked at, up to the one of the finding
  std::optional<ScheduleFinding> finding{};  ///< empty: nothing was found
  std::string not_judged{};                  ///< why none was looked at; empty when some was
};

/// Of `race-free`.
struct RaceFreeEvidence {
  std::vector<std::uint64_t> seeds;
  std::vector<ScheduledKernel> kernels;
};

/// Of `correct`.
struct CorrectEvidence {
  std::uint64_t seed = 0;
  Numerics numerics = Numerics::exact;  ///< by which definition outputs were judged
  std::vector<TrialResult> trials;
  runtime::Confined confined{};  ///< what the process of a contestant from outside was held by; empty: it has none
};

/// What an experiment found.
struct Accusation {
  std::string cheat;     ///< in a few words, "answers from a cache keyed by pointer"
  std::string sentence;  ///< what was done, and what came out
};

/// How an experiment begins that could not be made since the kernel refuses a shape that no suite lists.
inline constexpr std::string_view refuses_another_shape = "it refuses the neighbouring shape: ";

/// One experiment by name.
struct ProbeResult {
  std::string probe;
  std::optional<Accusation> accusation;
  std::string not_judged;  ///< why it says nothing; empty when it does
};

/// Of `honest`.
struct HonestEvidence {
  std::string problem;
  std::uint64_t secret_seed = 0;
  std::vector<ProbeResult> probes;
};

/// What was looked at while one problem was timed, of all roles.
struct ProblemVerification {
  std::string problem;
  std::uint64_t secret_seed = 0;  ///< of its data
  std::size_t samples = 0;
  std::size_t calls = 0;                     ///< in them
  std::size_t calls_looked_at = 0;           ///< of these; some elements of each were held against the definition
  std::size_t whole_outputs = 0;             ///< of calls, compared with a trusted computation's
  std::size_t inputs_compared = 0;           ///< tensors, byte by byte
  double sampled_s = 0;                      ///< samples and rests
  double aside_s = 0;                        ///< making inputs and looking
  std::size_t uncounted = 0;                 ///< samples on inputs that had been seen, or all but seen
  std::optional<Distribution> other_data{};  ///< the other distribution that was timed
  std::size_t waited = 0;                    ///< samples that were dropped, because their threads waited for processors
};

/// Of `timed`.
struct TimedEvidence {
  std::string clock;
  Distribution distribution = Distribution::normal;  ///< of the inputs
  double budget_s = 0;
  Ceilings ceilings;
  std::vector<ProblemVerification> verification{};
};

/// Of `verdict`.
struct VerdictEvidence {
  std::vector<ModeSpeedup> modes;
};

/// Of any gate, as a ledger or another process told of it: a JSON object that is handed on as it is.
struct RecordedEvidence {
  std::string json;
};

/// The first: nothing beyond the gate's sentence.
using Evidence = std::variant<std::monostate, MemoryNeed, CompilerLog, BuildEvidence, AuditedEvidence, RaceFreeEvidence,
                              CorrectEvidence, HonestEvidence, TimedEvidence, VerdictEvidence, RecordedEvidence>;

}  // namespace thresher::arena
