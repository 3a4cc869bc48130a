// What the audit reads of Blackwell's machine code: recorded listings of small rings, as they are and with mistakes.
#include "arena/audit/tensor_code.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "arena/audit/audit.hpp"
#include "arena/audit/disassembler.hpp"
#include "arena/audit/expectations.hpp"
#include "arena/audit/recorded.hpp"
#include "machine/device_program.hpp"

namespace thresher::arena {
namespace {

SassFunction listed(const std::string& text) {
  const std::vector<SassFunction> functions = parse_sass(text);
  EXPECT_EQ(functions.size(), 1U);
  return functions.at(0);
}

SassFunction recorded_tensor_code(const std::string& name) { return listed(recorded_text(name + ".sass")); }

/// What the rings promise: four products of NVFP4 operands a step, two copies of scales before each, a commit for the
/// slots and one for the sums, 128 × 64 sums of which a warp loads its 32 lanes.
AuditExpectations expected_of_ring(bool is_pair = false) {
  AuditExpectations expected = expected_of_any_kernel();
  expected.matrix_kind = "UTCOMMA";
  expected.min_matrix_instructions = 4;
  expected.tensor = {.products = 4,
                     .scale_copies = 8,
                     .is_pair = is_pair,
                     .min_commits = 2,
                     .loaded_bytes = std::int64_t{32} * 64 * 4};
  return expected;
}

AuditVerdict judged(const SassFunction& function, const AuditExpectations& expected,
                    const runtime::ResourceReport& resources = {.registers = 94}) {
  return judge_audit(audit("ring", &resources, &function, 53376), expected);
}

std::string failures_of(const AuditVerdict& verdict) {
  std::string all;
  for (const AuditFinding& finding : verdict.findings) {
    all += finding.ok ? "" : finding.sentence + "\n";
  }
  return all;
}

bool says(const AuditVerdict& verdict, const std::string& sentence) {
  return std::any_of(verdict.findings.begin(), verdict.findings.end(),
                     [&](const AuditFinding& finding) { return finding.sentence.find(sentence) != std::string::npos; });
}

TEST(TensorCode, ACleanRingPasses) {
  const SassFunction ring = recorded_tensor_code("tensor_ring");
  const AuditVerdict verdict = judged(ring, expected_of_ring());
  EXPECT_EQ(failures_of(verdict), "");
  const TensorReport report = read_tensor_code(ring).value();
  EXPECT_EQ(ring.arch, "sm_100");  // the tools leave out which family it is
  EXPECT_EQ(report.instructions.at("UTCOMMA.4X"), 4);
  EXPECT_EQ(report.scale_copies, 8);
  EXPECT_EQ(report.commits, 2);
  EXPECT_EQ(report.of_pairs, 0);
  EXPECT_EQ(report.loaded_bytes, 8192);
  EXPECT_EQ(report.trap_calls, 3);
  EXPECT_EQ(report.other_calls, 0);
  EXPECT_EQ(report.traps, 3);
  EXPECT_TRUE(report.repeated.empty());
  EXPECT_TRUE(says(verdict, fmt::format("{} R2UR in the loop of the products", report.uniform_moves)));
}

// Recorded with the other tool, which names no labels.
TEST(TensorCode, ACleanPairPasses) {
  const SassFunction pair = recorded_tensor_code("tensor_pair");
  const AuditVerdict verdict = judged(pair, expected_of_ring(true));
  EXPECT_EQ(failures_of(verdict), "");
  const TensorReport report = read_tensor_code(pair).value();
  EXPECT_EQ(report.of_blocks, 0);
  EXPECT_EQ(report.of_pairs, 4 + 8 + 2 + 2);  // products, copies, commits, allocations; who gives back does not say
  EXPECT_EQ(report.trap_calls, 3);
  EXPECT_EQ(report.other_calls, 0);
  EXPECT_EQ(failures_of(judged(pair, expected_of_ring(false))),
            "16 tcgen05 instructions are of a pair (.2CTA), 0 expected\n");
  EXPECT_EQ(failures_of(judged(recorded_tensor_code("tensor_ring"), expected_of_ring(true))),
            "16 tcgen05 instructions are of one block, 0 expected\n");
}

TEST(TensorCode, AProductThatIsNotElectedIsIssuedByEveryThread) {
  for (const char* listing : {"tensor_ring_not_elected", "tensor_ring_not_elected_by_cuobjdump"}) {
    const AuditVerdict verdict = judged(recorded_tensor_code(listing), expected_of_ring());
    EXPECT_EQ(failures_of(verdict),
              "14 tcgen05 instructions, 0 allowed, stand in a loop that issues them once for each of up to 32 threads, "
              "since they are under no elected branch: 2 × UTCBAR, 8 × UTCCP.T.S.4x32dp128bit, 4 × UTCOMMA.4X\n")
        << listing;
    // Whatever was expected.
    EXPECT_TRUE(judged(recorded_tensor_code(listing), expected_of_any_kernel()).failed());
  }
}

TEST(TensorCode, CountsAreExact) {
  EXPECT_EQ(failures_of(judged(recorded_tensor_code("tensor_ring_three_products"), expected_of_ring())),
            "3 matrix instructions of the kind UTCOMMA, the tile implies at least 4; the code has 3 × UTCOMMA.4X\n"
            "3 UTCOMMA in the code, exactly 4 expected\n"
            "6 copies of scales (UTCCP) in the code, exactly 8 expected\n");
  AuditExpectations fewer = expected_of_ring();
  fewer.min_matrix_instructions = 0;
  fewer.tensor.products = 3;
  fewer.tensor.scale_copies = 6;
  EXPECT_EQ(failures_of(judged(recorded_tensor_code("tensor_ring_three_products"), fewer)), "");
  EXPECT_EQ(failures_of(judged(recorded_tensor_code("tensor_ring"), fewer)),
            "4 UTCOMMA in the code, exactly 3 expected\n8 copies of scales (UTCCP) in the code, exactly 6 expected\n");
  AuditExpectations more = expected_of_ring();
  more.tensor.min_commits = 3;
  more.tensor.loaded_bytes = 16384;
  EXPECT_EQ(failures_of(judged(recorded_tensor_code("tensor_ring"), more)),
            "2 commits (UTCBAR), at least 3 expected: one for each ring\n"
            "8192 bytes of sums loaded by a warp (LDTM), exactly 16384 expected\n");
  AuditExpectations unscaled = expected_of_ring();
  unscaled.matrix_kind = "UTCHMMA";
  EXPECT_NE(failures_of(judged(recorded_tensor_code("tensor_ring"), unscaled))
                .find("0 UTCHMMA in the code, exactly 4 expected"),
            std::string::npos);
}

TEST(TensorCode, SpillsAreFound) {
  const runtime::ResourceReport resources{
      .registers = 96, .stack_bytes = 856, .spill_store_bytes = 780, .spill_load_bytes = 784};
  const std::string found =
      failures_of(judged(recorded_tensor_code("tensor_ring_spilled"), expected_of_ring(), resources));
  EXPECT_NE(found.find("registers are spilled: 780 bytes stored and 784 loaded, 0 allowed"), std::string::npos)
      << found;
  EXPECT_NE(found.find("293 instructions load from or store to local memory"), std::string::npos) << found;
}

// The compiler refuses to mix groups in one kernel, so that this one is made from the recorded listing.
TEST(TensorCode, GroupsAreNotMixed) {
  std::string text = recorded_text("tensor_pair.sass");
  const std::size_t at = text.find("UTCCP.T.S.2CTA");
  text.replace(at, std::string_view("UTCCP.T.S.2CTA").size(), "UTCCP.T.S");
  AuditExpectations expected = expected_of_ring(true);
  expected.tensor.is_pair.reset();
  EXPECT_EQ(failures_of(judged(listed(text), expected)),
            "15 tcgen05 instructions are of a pair (.2CTA) and 1 of one block: all or none allowed\n");
}

/// A listing in nvdisasm's words.
std::string listing_of(const std::vector<std::string>& lines) {
  std::string text = "\t.section\t.text.k,\"ax\",@progbits\n";
  int offset = 0;
  for (const std::string& line : lines) {
    text += line.ends_with(':') ? line + "\n" : fmt::format(" /*{:04x}*/ {} ;\n", 16 * offset++, line);
  }
  return text;
}

TEST(TensorCode, CallsOfOthersThanTheAllocatorAndChecksLeftOnFail) {
  AuditExpectations expected = expected_of_any_kernel();
  expected.uses_shared_memory = false;
  const std::vector<std::string> calls{"LDTM.x16 R4, tmem[UR4]", "CALL.REL.NOINC `($helper)", "EXIT", "$helper:",
                                       "MUFU.RCP R4, R4",        "RET.REL.NODEC R2 `(k)"};
  EXPECT_EQ(failures_of(judged(listed(listing_of(calls)), expected)),
            "1 calls of subroutines that are not the allocator's traps, 0 allowed\n");
  std::vector<std::string> checked{"UTCATOMSWS.FIND_AND_SET.ALIGN UP0, UR4, UR4"};
  for (int i = 0; i < 9; ++i) {
    checked.push_back(fmt::format("CALL.REL.NOINC `($check_{})", i));
  }
  for (int i = 0; i < 9; ++i) {
    checked.push_back(fmt::format("$check_{}:", i));
    checked.emplace_back("BPT.TRAP 0x1");
  }
  EXPECT_EQ(failures_of(judged(listed(listing_of(checked)), expected)),
            "9 traps and 9 calls of them, 3 allowed (the allocator's): as when access checks are left on\n");
}

TEST(TensorCode, StoresOf32BytesAreWide) {
  const SassFunction function =
      listed(listing_of({"STG.E.ENL2.256 desc[UR4][R2.64], R4, R8", "STG.E.128 desc[UR4][R2.64], R4", "STG.E R2, R4"}));
  const AuditReport report = audit("k", nullptr, &function, 0);
  EXPECT_EQ(report.global_accesses, 3);
  EXPECT_EQ(report.wide_global_accesses, 2);
  EXPECT_FALSE(report.tensor);
}

// As the compiler writes PTX's shapes, from .x1 to the widest.
TEST(TensorCode, BytesOfALoadAreInItsName) {
  EXPECT_EQ(loaded_bytes_of("LDTM"), 128);
  EXPECT_EQ(loaded_bytes_of("LDTM.x128"), 128 * 128);
  EXPECT_EQ(loaded_bytes_of("LDTM.16dp64bit"), 128);
  EXPECT_EQ(loaded_bytes_of("LDTM.16dp128bit.x2"), 512);
  EXPECT_EQ(loaded_bytes_of("LDTM.16dp256bit"), 512);
  EXPECT_EQ(loaded_bytes_of("LDTM.16dp256bit.x32"), 16384);
  EXPECT_EQ(loaded_bytes_of("LDTM.16dp32bit_t0_t15.x8"), 512);
  EXPECT_EQ(loaded_bytes_of("LDTM.x99999999999999999999"), 0);
}

// R2UR count where the products are; waiting that stands at the end of the code, and leads back, is no loop.
TEST(TensorCode, TheLoopOfTheProductsIsTheInnermostOne) {
  const SassFunction function = listed(
      listing_of({"R2UR UR1, R1", ".L_tile:", "R2UR UR2, R2", ".L_step:", "R2UR UR3, R3",
                  "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R6]", "@!P1 BRA `(.L_wait)", ".L_go:", "UTCOMMA.4X gdesc[UR4]",
                  "@P2 BRA `(.L_step)", "@P3 BRA `(.L_tile)", "EXIT", ".L_wait:", "R2UR UR5, R5", "BRA `(.L_go)"}));
  EXPECT_EQ(read_tensor_code(function).value().uniform_moves, 1);
}

TEST(TensorCode, BranchesThatLeadNowhereAreNoLoops) {
  const SassFunction function =
      listed(listing_of({"@P0 BRA.U.ANY 0xffffffffffffffffffff", "BRA `(.L_none)", "UTCOMMA.4X gdesc[UR4]",
                         "CALL.REL.NOINC", "BRA", "@P1 BRA `(.L_end)", ".L_end:"}));
  for (const SassInstruction& instruction : function.code) {
    EXPECT_EQ(instruction.target, -1) << instruction.mnemonic;
  }
  const TensorReport report = read_tensor_code(function).value();
  EXPECT_TRUE(report.repeated.empty());
  EXPECT_EQ(report.other_calls, 1);
}

// What NVRTC makes of the same rings today.
TEST(TensorCode, TheRingsAsTheyAreCompiledHere) {
  const Disassembler tools = find_disassembler();
  if (!runtime::nvrtc_status().problem.empty() || !tools.found()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem << how_to_get_a_disassembler();
  }
  const auto verdict_of = [&](const std::string& name, const std::string& defect, bool is_pair) {
    const std::string header = "emulator/kernels/" + name + ".hpp";
    std::string text = machine::test::read_file(std::string(THRESHER_SOURCE_DIR) + "/tests/" + header);
    const std::string chosen_when_run = "params.defect == wanted";
    const std::size_t at = text.find(chosen_when_run);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, chosen_when_run.size(), defect + " == wanted");
    runtime::Program program = machine::test::program_of(header, text, {"planted::" + name});
    program.text = "#include \"" + header + "\"\n";
    program.arch = "sm_100f";
    const runtime::Cubin cubin = runtime::compile(program);
    const std::vector<SassFunction> functions = disassemble(tools, cubin.image).functions;
    return judge_audit(audit(name, &cubin.kernels.at(0).resources, &functions.at(0), 53376), expected_of_ring(is_pair));
  };
  EXPECT_EQ(failures_of(verdict_of("tensor_ring", "TensorDefect::none", false)), "");
  EXPECT_EQ(failures_of(verdict_of("tensor_pair", "PairDefect::none", true)), "");
  EXPECT_NE(failures_of(verdict_of("tensor_ring", "TensorDefect::not_elected", false)).find("4 × UTCOMMA.4X"),
            std::string::npos);
}

}  // namespace
}  // namespace thresher::arena
