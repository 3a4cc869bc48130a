#include "arena/audit/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "arena/audit/tensor_code.hpp"

namespace thresher::arena {
namespace {

constexpr int instruction_bytes = 16;
constexpr std::array<std::string_view, 15> matrix_opcodes{"HMMA",    "IMMA",    "DMMA",    "QMMA",    "OMMA",
                                                          "BMMA",    "HGMMA",   "QGMMA",   "IGMMA",   "BGMMA",
                                                          "UTCHMMA", "UTCQMMA", "UTCOMMA", "UTCIMMA", "UTCMXQMMA"};
/// Matrix instructions that read their operands from shared memory themselves.
constexpr std::array<std::string_view, 9> shared_matrix_opcodes{"HGMMA",   "QGMMA",   "IGMMA",   "BGMMA",    "UTCHMMA",
                                                                "UTCQMMA", "UTCOMMA", "UTCIMMA", "UTCMXQMMA"};
constexpr std::array<std::string_view, 7> shared_opcodes{"LDS", "STS", "LDSM", "STSM", "ATOMS", "LDGSTS", "REDS"};
constexpr std::array<std::string_view, 2> tma_load_opcodes{"UTMALDG", "UBLKCP"};
constexpr std::array<std::string_view, 4> tma_store_opcodes{"UTMASTG", "UTMAREDG", "UBLKRED", "UBLKST"};
constexpr std::array<std::string_view, 8> global_opcodes{"LDG", "STG", "LD", "ST", "ATOMG", "ATOM", "RED", "LDGSTS"};
constexpr std::array<std::string_view, 5> barrier_opcodes{"BAR", "SYNCS", "UCGABAR_ARV", "UCGABAR_WAIT", "ARRIVES"};
constexpr std::array<std::string_view, 8> branch_opcodes{"BRA", "BRX", "BRXU", "JMP", "JMX", "CALL", "RET", "JMXU"};

template <class Opcodes>
int count_all(const SassFunction& function, const Opcodes& opcodes) {
  int total = 0;
  for (const std::string_view opcode : opcodes) {
    total += function.count(opcode);
  }
  return total;
}

template <class Opcodes>
int count_wide(const SassFunction& function, const Opcodes& opcodes) {
  int total = 0;
  for (const std::string_view opcode : opcodes) {
    total += function.count(opcode, "128") + function.count(opcode, "256");
  }
  return total;
}

void read_code(AuditReport& report, const SassFunction& function) {
  report.disassembled = true;
  report.arch = function.arch;
  report.local_accesses = function.count("LDL") + function.count("STL");
  report.shared_accesses = count_all(function, shared_opcodes) + count_all(function, shared_matrix_opcodes) +
                           count_all(function, tma_load_opcodes) + count_all(function, tma_store_opcodes);
  report.tma_loads = count_all(function, tma_load_opcodes);
  report.tma_stores = count_all(function, tma_store_opcodes);
  report.global_accesses = count_all(function, global_opcodes);
  report.wide_global_accesses = count_wide(function, global_opcodes);
  report.barriers = count_all(function, barrier_opcodes);
  report.branches = count_all(function, branch_opcodes);
  report.code_bytes = std::int64_t{function.instructions} * instruction_bytes;
  report.tensor = read_tensor_code(function);
  for (const auto& [mnemonic, times] : function.by_mnemonic) {
    const std::string_view opcode = std::string_view(mnemonic).substr(0, mnemonic.find('.'));
    if (std::find(matrix_opcodes.begin(), matrix_opcodes.end(), opcode) != matrix_opcodes.end()) {
      report.matrix_instructions[mnemonic] = times;
    }
  }
}

class Judgement {
 public:
  explicit Judgement(AuditVerdict& verdict) : verdict_(verdict) {}

  void expect(bool ok, std::string good, std::string bad) {
    verdict_.findings.push_back({ok, ok ? std::move(good) : std::move(bad)});
  }

 private:
  AuditVerdict& verdict_;
};

void judge_resources(Judgement& judgement, const AuditReport& report, const AuditExpectations& expected) {
  const int spills = report.spill_store_bytes + report.spill_load_bytes;
  judgement.expect(spills <= expected.max_spill_bytes, "no registers are spilled",
                   fmt::format("registers are spilled: {} bytes stored and {} loaded, {} allowed",
                               report.spill_store_bytes, report.spill_load_bytes, expected.max_spill_bytes));
  const int arrays = report.stack_bytes;
  judgement.expect(arrays <= expected.max_local_bytes, "nothing lies in local memory",
                   fmt::format("{} bytes a thread lie in local memory (as much as an array of {} floats), {} allowed",
                               arrays, arrays / 4, expected.max_local_bytes));
  if (expected.max_registers) {
    judgement.expect(
        report.registers <= *expected.max_registers, fmt::format("{} registers a thread", report.registers),
        fmt::format("{} registers a thread, over the expected {}", report.registers, *expected.max_registers));
  }
}

std::string list(const std::map<std::string, int>& instructions) {
  std::string text;
  for (const auto& [mnemonic, times] : instructions) {
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", times, mnemonic);
  }
  return text;
}

void judge_matrix(Judgement& judgement, const AuditReport& report, const AuditExpectations& expected) {
  if (expected.matrix_kind.empty()) {
    return;
  }
  const int count = report.matrix_count(expected.matrix_kind);
  const int least = std::max(1, expected.min_matrix_instructions);
  const std::string others = list(report.matrix_instructions);
  judgement.expect(count >= least, fmt::format("matrix instructions: {}", others),
                   fmt::format("{} matrix instructions of the kind {}, the tile implies at least {}; the code has {}",
                               count, expected.matrix_kind, least, others.empty() ? "none" : others));
}

void judge_shared(Judgement& judgement, const AuditReport& report, const AuditExpectations& expected) {
  if (!expected.uses_shared_memory) {
    return;
  }
  if (report.declared_shared_bytes > 0) {
    judgement.expect(report.shared_accesses > 0,
                     fmt::format("the {} bytes of shared memory are used", report.declared_shared_bytes),
                     fmt::format("{} bytes of shared memory are declared, and the machine code never uses them",
                                 report.declared_shared_bytes));
  } else {
    judgement.expect(report.shared_accesses > 0, "shared memory is used", "the machine code uses no shared memory");
  }
}

/// Holds for every kernel that uses tensor memory, whatever its expectations say.
void judge_any_tensor_code(Judgement& judgement, const TensorReport& tensor) {
  constexpr int threads_of_a_warp = 32;
  constexpr int max_traps = 3;  // of the compiler's allocator: one where it allocates, two where it gives back
  const int repeated = std::accumulate(tensor.repeated.begin(), tensor.repeated.end(), 0,
                                       [](int sum, const auto& each) { return sum + each.second; });
  judgement.expect(repeated == 0, "one thread issues each tcgen05 instruction",
                   fmt::format("{} tcgen05 instructions, 0 allowed, stand in a loop that issues them once for each of "
                               "up to {} threads, since they are under no elected branch: {}",
                               repeated, threads_of_a_warp, list(tensor.repeated)));
  judgement.expect(tensor.of_pairs == 0 || tensor.of_blocks == 0,
                   fmt::format("all tcgen05 instructions are of {}", tensor.of_pairs > 0 ? "a pair" : "one block"),
                   fmt::format("{} tcgen05 instructions are of a pair (.2CTA) and {} of one block: all or none allowed",
                               tensor.of_pairs, tensor.of_blocks));
  judgement.expect(tensor.trap_calls <= max_traps && tensor.traps <= max_traps,
                   fmt::format("{} traps, the allocator's", tensor.traps),
                   fmt::format("{} traps and {} calls of them, {} allowed (the allocator's): as when access checks "
                               "are left on",
                               tensor.traps, tensor.trap_calls, max_traps));
  judgement.expect(
      tensor.other_calls == 0, "no subroutine is called",
      fmt::format("{} calls of subroutines that are not the allocator's traps, 0 allowed", tensor.other_calls));
}

void judge_tensor_code(Judgement& judgement, const AuditReport& report, const AuditExpectations& expected) {
  const TensorReport tensor = report.tensor.value_or(TensorReport{});
  const TensorExpectations& wanted = expected.tensor;
  const auto expect_exactly = [&](const std::string& what, std::int64_t found, std::int64_t exactly) {
    judgement.expect(found == exactly, fmt::format("{} {}", found, what),
                     fmt::format("{} {}, exactly {} expected", found, what, exactly));
  };
  if (wanted.products) {
    const std::string kind = expected.matrix_kind.empty() ? "tensor products" : expected.matrix_kind;
    expect_exactly(kind + " in the code", report.matrix_count(expected.matrix_kind), *wanted.products);
  }
  if (wanted.scale_copies) {
    expect_exactly("copies of scales (UTCCP) in the code", tensor.scale_copies, *wanted.scale_copies);
  }
  if (wanted.is_pair) {
    judgement.expect((*wanted.is_pair ? tensor.of_blocks : tensor.of_pairs) == 0,
                     *wanted.is_pair ? "two blocks issue as one" : "each block issues for itself",
                     fmt::format("{} tcgen05 instructions are of {}, 0 expected",
                                 *wanted.is_pair ? tensor.of_blocks : tensor.of_pairs,
                                 *wanted.is_pair ? "one block" : "a pair (.2CTA)"));
  }
  if (wanted.min_commits > 0) {
    judgement.expect(tensor.commits >= wanted.min_commits, fmt::format("{} commits", tensor.commits),
                     fmt::format("{} commits (UTCBAR), at least {} expected: one for each ring", tensor.commits,
                                 wanted.min_commits));
  }
  if (wanted.loaded_bytes) {
    expect_exactly("bytes of sums loaded by a warp (LDTM)", tensor.loaded_bytes, *wanted.loaded_bytes);
  }
  if (report.tensor) {
    judge_any_tensor_code(judgement, tensor);
    judgement.expect(true, fmt::format("{} R2UR in the loop of the products", tensor.uniform_moves), "");
  }
}

void judge_code(Judgement& judgement, const AuditReport& report, const AuditExpectations& expected) {
  judge_matrix(judgement, report, expected);
  judge_tensor_code(judgement, report, expected);
  judge_shared(judgement, report, expected);
  judgement.expect(report.local_accesses == 0 || expected.max_local_bytes > 0, "no instruction touches local memory",
                   fmt::format("{} instructions load from or store to local memory", report.local_accesses));
  if (expected.min_tma_loads > 0) {
    judgement.expect(report.tma_loads >= expected.min_tma_loads, fmt::format("{} bulk loads", report.tma_loads),
                     fmt::format("{} bulk loads, at least {} expected", report.tma_loads, expected.min_tma_loads));
  }
  if (expected.min_tma_stores > 0) {
    judgement.expect(report.tma_stores >= expected.min_tma_stores, fmt::format("{} bulk stores", report.tma_stores),
                     fmt::format("{} bulk stores, at least {} expected", report.tma_stores, expected.min_tma_stores));
  }
  if (expected.min_wide_share) {
    judgement.expect(
        report.wide_share() >= *expected.min_wide_share,
        fmt::format("{:.0f} % of the global accesses are 16 bytes wide or wider", 100 * report.wide_share()),
        fmt::format("{} of {} global accesses are 16 bytes wide or wider ({:.0f} %), at least {:.0f} % expected",
                    report.wide_global_accesses, report.global_accesses, 100 * report.wide_share(),
                    100 * *expected.min_wide_share));
  }
  if (expected.max_branches) {
    judgement.expect(report.branches <= *expected.max_branches, fmt::format("{} branches", report.branches),
                     fmt::format("{} branches, over the expected {}", report.branches, *expected.max_branches));
  }
  if (expected.max_code_bytes) {
    judgement.expect(
        report.code_bytes <= *expected.max_code_bytes, fmt::format("{} bytes of code", report.code_bytes),
        fmt::format("{} bytes of code, over the expected {}", report.code_bytes, *expected.max_code_bytes));
  }
}

}  // namespace

AuditReport audit(std::string_view kernel, const runtime::ResourceReport* resources, const SassFunction* function,
                  int dynamic_shared_bytes) {
  AuditReport report;
  report.kernel = std::string(kernel);
  report.declared_shared_bytes = dynamic_shared_bytes;
  if (function) {
    read_code(report, *function);
    report.registers = function->highest_register + 1;
  }
  if (resources) {
    report.registers = resources->registers;
    report.stack_bytes = resources->stack_bytes;
    report.spill_store_bytes = resources->spill_store_bytes;
    report.spill_load_bytes = resources->spill_load_bytes;
    report.declared_shared_bytes += resources->static_shared_bytes;
  }
  return report;
}

AuditVerdict judge_audit(const AuditReport& report, const AuditExpectations& expected, std::string_view why_no_code) {
  AuditVerdict verdict;
  Judgement judgement(verdict);
  judge_resources(judgement, report, expected);
  if (report.disassembled) {
    judge_code(judgement, report, expected);
  } else {
    verdict.not_judged = std::string(why_no_code);
  }
  return verdict;
}

bool AuditVerdict::failed() const {
  return std::any_of(findings.begin(), findings.end(), [](const AuditFinding& finding) { return !finding.ok; });
}

GateResult AuditVerdict::gate(const AuditReport& report) const {
  GateResult result{GateKind::audited, Outcome::passed, "", AuditedEvidence{{AuditedKernel{report}}}};
  result.outcome = failed() ? Outcome::failed : not_judged.empty() ? Outcome::passed : Outcome::not_judged;
  for (const AuditFinding& finding : findings) {
    if (finding.ok != failed()) {
      result.sentence += (result.sentence.empty() ? "" : "; ") + finding.sentence;
    }
  }
  if (result.outcome == Outcome::not_judged) {
    result.sentence = fmt::format("the machine code was not looked at: {}", not_judged);
  }
  return result;
}

}  // namespace thresher::arena
