#include "arena/audit/audit.hpp"

#include <gtest/gtest.h>

#include "ops/forecast.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "arena/audit/disassembler.hpp"
#include "arena/audit/expectations.hpp"
#include "arena/audit/recorded.hpp"
#include "arena/expect_error.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

SassFunction recorded(const std::string& name) {
  const std::vector<SassFunction> functions = parse_sass(recorded_text(name + ".sass"));
  EXPECT_EQ(functions.size(), 1U);
  return functions.at(0);
}

/// As ptxas reported it when the dump was recorded.
runtime::ResourceReport resources_of(const std::string& name) {
  if (name == "origin_like") {
    return {.registers = 32, .stack_bytes = 2048};
  }
  if (name == "spilled") {
    return {.registers = 32,
            .stack_bytes = 336,
            .spill_store_bytes = 608,
            .spill_load_bytes = 640,
            .static_shared_bytes = 16384};
  }
  return {.registers = 34, .static_shared_bytes = 4096, .barriers = 1};
}

AuditReport report_of(const std::string& name, int dynamic_shared_bytes = 0) {
  const runtime::ResourceReport resources = resources_of(name);
  const SassFunction function = recorded(name);
  return audit(name, &resources, &function, dynamic_shared_bytes);
}

std::string failures(const AuditVerdict& verdict) {
  std::string all;
  for (const AuditFinding& finding : verdict.findings) {
    all += finding.ok ? "" : finding.sentence + "\n";
  }
  return all;
}

// The kernel that this project answers: declared, unused shared memory and an array of 512 floats a thread.
TEST(Audit, AKernelLikeTheOriginsFailsInThoseWords) {
  const AuditReport report = report_of("origin_like", 49152);
  AuditExpectations expected = expected_of_any_kernel();
  expected.matrix_kind = "HGMMA";
  expected.min_wide_share = 0.5;
  const AuditVerdict verdict = judge_audit(report, expected);
  const std::string found = failures(verdict);
  EXPECT_NE(found.find("49152 bytes of shared memory are declared, and the machine code never uses them"),
            std::string::npos)
      << found;
  EXPECT_NE(found.find("2048 bytes a thread lie in local memory (as much as an array of 512 floats), 0 allowed"),
            std::string::npos)
      << found;
  EXPECT_NE(found.find("0 matrix instructions of the kind HGMMA, the tile implies at least 1; the code has none"),
            std::string::npos)
      << found;
  EXPECT_NE(found.find("instructions load from or store to local memory"), std::string::npos) << found;
  EXPECT_NE(found.find("global accesses are 16 bytes wide or wider (0 %), at least 50 % expected"), std::string::npos)
      << found;
  const GateResult gate = verdict.gate(report);
  EXPECT_EQ(gate.kind, GateKind::audited);
  EXPECT_EQ(gate.outcome, Outcome::failed);
  EXPECT_NE(gate.sentence.find("never uses them"), std::string::npos);
  EXPECT_EQ(std::get<AuditedEvidence>(gate.evidence).kernels.at(0).report.stack_bytes, 2048);
}

TEST(Audit, SpillsAreFound) {
  const AuditReport report = report_of("spilled");
  EXPECT_GT(report.local_accesses, 0);
  EXPECT_GT(report.shared_accesses, 0);
  const std::string found = failures(judge_audit(report, expected_of_any_kernel()));
  EXPECT_NE(found.find("registers are spilled: 608 bytes stored and 640 loaded, 0 allowed"), std::string::npos)
      << found;
  EXPECT_EQ(found.find("never uses"), std::string::npos) << found;
}

TEST(Audit, AnHonestKernelPasses) {
  const AuditReport report = report_of("staged");
  EXPECT_EQ(report.arch, "sm_90a");
  EXPECT_EQ(report.local_accesses, 0);
  EXPECT_GT(report.shared_accesses, 0);
  EXPECT_EQ(report.wide_share(), 1.0);
  EXPECT_GT(report.barriers, 0);
  EXPECT_GT(report.branches, 0);
  EXPECT_EQ(report.matrix_count(), 0);
  const AuditVerdict verdict = judge_audit(report, expected_of_any_kernel());
  EXPECT_FALSE(verdict.failed()) << failures(verdict);
  EXPECT_EQ(verdict.gate(report).outcome, Outcome::passed);
}

/// What the strategy promises of its code with these knobs.
AuditExpectations expected_of_interleaved(const std::string& knobs) {
  const DualGemmProblem problem{
      .m = 256, .n = 4096, .k = 7168, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  const DualGemmOptions options{.strategy = "interleaved", .knobs = Knobs::parse(knobs)};
  const strategies::PlannedCall call = ops::planned_call(problem, options, device_spec("H200"));
  return std::get<strategies::KernelLaunch>(call.steps.front()).expected;
}

// Products of a warp that no recorded listing has.
TEST(Audit, ProductsOfOneWarpAreCounted) {
  for (const std::string kind : {"HMMA", "QMMA", "OMMA"}) {
    const std::vector<SassFunction> functions = parse_sass("\tcode for sm_120a\n\t\tFunction : k\n        /*0000*/  " +
                                                           kind + ".16864.F32 R4, R4, R12, RZ ;\n");
    EXPECT_EQ(audit("k", nullptr, &functions.at(0), 0).matrix_count(kind), 1) << kind;
  }
}

// A kernel of this repository: 128 tokens by 256 weight rows, K = 64 a stage, two math warpgroups, TMA in and out.
TEST(Audit, AMatrixKernelIsReadRight) {
  const SassFunction function = recorded("dual_gemm");
  const runtime::ResourceReport resources{.registers = 168};
  const AuditReport report = audit("dual_gemm", &resources, &function, 200000);
  EXPECT_EQ(report.matrix_count("HGMMA"), function.count("HGMMA"));
  EXPECT_EQ(report.matrix_count("QGMMA"), 0);
  EXPECT_EQ(function.count("HGMMA", "64x256x16"), report.matrix_count());
  EXPECT_EQ(report.tma_loads, function.count("UTMALDG"));
  EXPECT_GT(report.tma_loads, 0);
  EXPECT_EQ(report.tma_stores, 2);
  EXPECT_EQ(report.local_accesses, 0);

  const std::string tile = "block_outputs=128 warpgroup_tiles=1 math_warpgroups=2 ";
  const AuditExpectations expected = expected_of_interleaved(tile + "block_k=64 stages=4 epilogue=tma");
  EXPECT_EQ(expected.matrix_kind, "HGMMA");
  EXPECT_EQ(expected.min_matrix_instructions, 4);
  AuditVerdict verdict = judge_audit(report, expected);
  EXPECT_FALSE(verdict.failed()) << failures(verdict);

  // A tile four times as deep would need more products than a stage of this code has.
  verdict = judge_audit(report, expected_of_interleaved(tile + "block_k=256 stages=1 epilogue=simt"));
  EXPECT_NE(failures(verdict).find("the tile implies at least 16"), std::string::npos) << failures(verdict);
  // The same code where FP8 products were promised.
  AuditExpectations other = expected;
  other.matrix_kind = "QGMMA";
  EXPECT_NE(failures(judge_audit(report, other)).find("0 matrix instructions of the kind QGMMA"), std::string::npos);
}

TEST(Audit, WithoutADisassemblerTheCodeIsNotJudgedButSpillsStillFail) {
  runtime::ResourceReport resources = resources_of("staged");
  AuditReport report = audit("staged", &resources, nullptr, 0);
  AuditVerdict verdict = judge_audit(report, expected_of_any_kernel(), how_to_get_a_disassembler());
  EXPECT_EQ(verdict.gate(report).outcome, Outcome::not_judged);
  EXPECT_NE(verdict.gate(report).sentence.find("pip install nvidia-cuda-nvdisasm"), std::string::npos);
  resources = resources_of("spilled");
  report = audit("spilled", &resources, nullptr, 0);
  EXPECT_EQ(judge_audit(report, expected_of_any_kernel()).gate(report).outcome, Outcome::failed);
}

TEST(Audit, EveryLimitCanBeSetByNameAndEachFails) {
  const AuditReport report = report_of("staged");
  for (const auto& [key, value] : {std::pair{"max_registers", "10"},
                                   {"max_branches", "0"},
                                   {"max_code_bytes", "16"},
                                   {"min_tma_loads", "1"},
                                   {"min_tma_stores", "1"},
                                   {"matrix", "HGMMA"}}) {
    AuditExpectations expected = expected_of_any_kernel();
    set_expectation(expected, key, value);
    EXPECT_TRUE(judge_audit(report, expected).failed()) << key;
  }
  AuditExpectations expected = expected_of_any_kernel();
  set_expectation(expected, "shared_memory", "false");
  set_expectation(expected, "min_wide_share", "0.9");
  set_expectation(expected, "max_local_bytes", "64");
  set_expectation(expected, "max_spill_bytes", "64");
  set_expectation(expected, "min_matrix_instructions", "3");
  EXPECT_FALSE(judge_audit(report, expected).failed());
  EXPECT_NE(error_of([&] { set_expectation(expected, "speed", "9"); }).find("audit expectation \"speed\" is not known"),
            std::string::npos);
  EXPECT_NE(error_of([&] { set_expectation(expected, "max_registers", "-1"); }).find("max_registers is \"-1\""),
            std::string::npos);
  EXPECT_NE(error_of([&] { set_expectation(expected, "shared_memory", "maybe"); }).find("use true or false"),
            std::string::npos);
}

TEST(Sass, BothToolsFormatsAreReadAndRubbishIsPassedOver) {
  EXPECT_TRUE(parse_sass("").empty());
  EXPECT_TRUE(parse_sass("        /*0000*/  MOV R1, R2 ;\n").empty());  // no function yet
  const std::vector<SassFunction> functions = parse_sass(
      "\tcode for sm_90a\n\t\tFunction : first\n\t.headerflags\t@\"EF\"\n"
      "        /*0000*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;   /* 0x1 */\n"
      "                                                                              /* 0x2 */\n"
      "        /*0010*/                   BRA 0x650;  /* 0x3 */\n"
      "\t\tFunction : second\n        /*0000*/  EXIT ;\n");
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions[0].name, "first");
  EXPECT_EQ(functions[0].arch, "sm_90a");
  EXPECT_EQ(functions[0].instructions, 2);
  EXPECT_EQ(functions[0].count("LDG"), 1);
  EXPECT_EQ(functions[0].count("LDG", "128"), 1);
  EXPECT_EQ(functions[0].count("LD"), 0);  // an opcode is a whole word
  EXPECT_EQ(functions[0].highest_register, 4);
  EXPECT_EQ(functions[1].count("EXIT"), 1);
  EXPECT_TRUE(has_modifier("HGMMA.64x256x16.F32.BF16", "F32"));
  EXPECT_FALSE(has_modifier("HGMMA.64x256x16.F32.BF16", "F3"));
  EXPECT_FALSE(has_modifier("HGMMA", "HGMMA"));
}

TEST(Sass, ResourceUsageIsReadWithoutTheSystemsShare) {
  const std::vector<SassResources> all = parse_resource_usage(recorded_text("resources.txt"));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].name, "origin_like");
  EXPECT_EQ(all[0].stack_bytes, 2048);
  EXPECT_EQ(all[1].registers, 32);
  EXPECT_EQ(all[1].shared_bytes, 16384);
  EXPECT_EQ(all[2].shared_bytes, 4096);
}

TEST(Sass, ResourcesOfAFunctionWithoutANameAreNotAnothers) {
  const std::vector<SassResources> all =
      parse_resource_usage("Function first:\nREG:8 STACK:0\nFunction :\nREG:200 STACK:64\n");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].registers, 8);
  EXPECT_EQ(all[1].name, "a function without a name");
}

/// A folder with a disassembler that only says what it was asked.
class FakeToolkit {
 public:
  FakeToolkit() : root_(fs::temp_directory_path() / ("thresher-toolkit-" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "bin");
  }
  ~FakeToolkit() { fs::remove_all(root_); }
  void add(const char* name, const std::string& script) const {
    const fs::path path = root_ / "bin" / name;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  [[nodiscard]] fs::path root() const { return root_; }

 private:
  fs::path root_;
};

TEST(DisassemblerTools, AreFoundInAToolkitAndTheirFailuresAreSaid) {
  const FakeToolkit toolkit;
  toolkit.add("nvdisasm", "cat '" + (recorded_folder / "origin_like.sass").string() + "'");
  const std::string home = toolkit.root().string();
  const auto environment = [&](const char* name) -> const char* {
    return std::string_view(name) == "CUDA_HOME" ? home.c_str() : nullptr;
  };
  Disassembler tools = find_disassembler(environment);
  EXPECT_EQ(tools.nvdisasm, toolkit.root() / "bin/nvdisasm");
  tools.cuobjdump.clear();  // a toolkit on this machine may have one
  const Disassembly out = disassemble(tools, fs::path("any.cubin"));
  ASSERT_EQ(out.functions.size(), 1U);
  EXPECT_EQ(out.functions[0].name, "origin_like");

  toolkit.add("nvdisasm", "echo 'nvdisasm fatal : not a cubin'; exit 1");
  EXPECT_NE(error_of([&] { (void)disassemble(tools, fs::path("any.cubin")); }).find("nvdisasm fatal : not a cubin"),
            std::string::npos);
  EXPECT_NE(error_of([&] { (void)disassemble(Disassembler{}, fs::path("any.cubin")); }).find("set CUDA_HOME"),
            std::string::npos);
}

TEST(DisassemblerTools, ReadTheRecordedCubinWhereThereIsOne) {
  const Disassembler tools = find_disassembler();
  if (!tools.found()) {
    GTEST_SKIP() << how_to_get_a_disassembler();
  }
  const std::string bytes = recorded_text("staged.cubin");
  const Disassembly out = disassemble(tools, std::as_bytes(std::span(bytes)));
  ASSERT_EQ(out.functions.size(), 1U);
  EXPECT_EQ(out.functions[0].name, "staged");
  EXPECT_GT(out.functions[0].count("LDS"), 0);
}

}  // namespace
}  // namespace thresher::arena
