// The gate `audited` as a tournament judges it.
#include "arena/gates/audited.hpp"
#include "arena/gemm/task.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "arena/audit/expectations.hpp"
#include "arena/audit/recorded.hpp"
#include "arena/expect_error.hpp"
#include "arena/operation/planned_code.hpp"
#include "arena/planted.hpp"
#include "arena/user_kernels/compile/toolkit.hpp"
#include "ops/attention_call.hpp"
#include "ops/built_in_cubins.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/forecast.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::arena {
namespace {

using strategies::gemm::Product;

namespace fs = std::filesystem;

/// A disassembler that answers with a recorded listing, whatever it is given.
class RecordedDisassembler {
 public:
  explicit RecordedDisassembler(const std::string& listing) {
    std::ofstream(folder_ / "nvdisasm") << "#!/bin/sh\ncat '" << (recorded_folder / listing).string() << "'\n";
    fs::permissions(folder_ / "nvdisasm", fs::perms::owner_all);
  }
  [[nodiscard]] Disassembler tools() const { return {folder_ / "nvdisasm", {}}; }

 private:
  ScratchFolder folder_;
};

/// A contestant with the machine code that a test gives it.
class CodedContestant final : public Contestant {
 public:
  explicit CodedContestant(MachineCode code) : Contestant({"dual_gemm", "coded"}), code_(std::move(code)) {}
  Answer feasible(const Problem&, Memory&) const override { return {}; }
  Answer compile(const Problem&) const override { return {}; }
  MachineCode machine_code(const Problem&) const override { return code_; }
  std::unique_ptr<Runner> prepare(const Problem&, Memory&, const std::vector<DeviceSet>&) const override {
    throw Error(ErrorCode::internal, "nobody runs it");
  }

 private:
  MachineCode code_;
};

KernelCode kernel_code(const std::string& name, const runtime::ResourceReport& resources, int dynamic_shared_bytes) {
  KernelCode code;
  code.title = "the planted kernel";
  code.kernel = name;
  code.resources = resources;
  code.dynamic_shared_bytes = dynamic_shared_bytes;
  code.expected = expected_of_any_kernel();
  return code;
}

const runtime::ResourceReport origin_like_resources{.registers = 32, .stack_bytes = 2048};
const runtime::ResourceReport staged_resources{.registers = 34, .static_shared_bytes = 4096, .barriers = 1};

GateResult judged(const Contestant& contestant, const Disassembler& tools, const Pitch* pitch = nullptr,
                  std::size_t num_problems = 1) {
  Suite suite;
  suite.name = "planted";
  suite.problems.assign(num_problems, problem_of(DualGemmProblem{}));
  FakeRig rig;
  Progress progress = Progress::silent();
  Match match{suite, contestant, contestant, pitch, rig, 1, {}, progress};
  const GateResult result = make_audited_gate(tools)->judge(match);
  EXPECT_EQ(result.kind, GateKind::audited);
  EXPECT_TRUE(std::holds_alternative<AuditedEvidence>(result.evidence));
  EXPECT_FALSE(result.sentence.empty());
  return result;
}

void expect_words(const GateResult& result, const std::string& words) {
  EXPECT_NE(result.sentence.find(words), std::string::npos) << result.sentence;
}

TEST(AuditedGate, AKernelLikeTheOriginsFailsInThoseWords) {
  const RecordedDisassembler recorded("origin_like.sass");
  const CodedContestant contestant({{kernel_code("origin_like", origin_like_resources, 49152)}, ""});
  const GateResult result = judged(contestant, recorded.tools());
  EXPECT_EQ(result.outcome, Outcome::failed);
  expect_words(result, "the planted kernel: ");
  expect_words(result, "2048 bytes a thread lie in local memory (as much as an array of 512 floats), 0 allowed");
  expect_words(result, "49152 bytes of shared memory are declared, and the machine code never uses them");
}

// The same from its source, where there is a compiler and a disassembler.
TEST(AuditedGate, TheOriginsLikenessFailsWhenItIsCompiledHereToo) {
  if (!runtime::nvrtc_status().problem.empty() || !find_disassembler().found() ||
      user_kernels::toolkit_headers().empty()) {
    GTEST_SKIP() << "needs NVRTC, the toolkit's headers and a disassembler: " << runtime::nvrtc_status().problem << " "
                 << how_to_get_a_disassembler();
  }
  runtime::Program program;
  program.title = "origin_like";
  program.text = recorded_text("origin_like.cu");
  program.kernels = {"origin_like"};
  program.options = {"--include-path=" + user_kernels::toolkit_headers().string()};
  const runtime::Cubin cubin = runtime::compile(program);
  KernelCode code = kernel_code(cubin.kernels.at(0).lowered_name, cubin.kernels.at(0).resources, 49152);
  code.image = cubin.image;
  const GateResult result = judged(CodedContestant({{code}, ""}), find_disassembler());
  EXPECT_EQ(result.outcome, Outcome::failed);
  expect_words(result, "as much as an array of 512 floats");
  expect_words(result, "49152 bytes of shared memory are declared, and the machine code never uses them");
}

TEST(AuditedGate, AnHonestKernelPassesAndIsReadOnceForAllProblems) {
  const RecordedDisassembler recorded("staged.sass");
  const CodedContestant contestant({{kernel_code("staged", staged_resources, 0)}, ""});
  const GateResult result = judged(contestant, recorded.tools(), nullptr, 3);
  EXPECT_EQ(result.outcome, Outcome::passed) << result.sentence;
  const std::vector<AuditedKernel>& kernels = std::get<AuditedEvidence>(result.evidence).kernels;
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].report.registers, 34);
  EXPECT_EQ(kernels[0].title, "the planted kernel");
}

TEST(AuditedGate, TheWorstKernelDecides) {
  const RecordedDisassembler recorded("staged.sass");
  KernelCode missing = kernel_code("another", staged_resources, 0);
  const KernelCode good = kernel_code("staged", staged_resources, 0);
  EXPECT_EQ(judged(CodedContestant({{good, missing}, ""}), recorded.tools()).outcome, Outcome::not_judged);
  missing.resources.spill_store_bytes = 8;
  const GateResult result = judged(CodedContestant({{good, missing}, "and a library"}), recorded.tools());
  EXPECT_EQ(result.outcome, Outcome::failed);
  expect_words(result, "registers are spilled: 8 bytes stored");
}

TEST(AuditedGate, WhatCannotBeReadIsNotJudgedAndSaysWhy) {
  const GateResult library = judged(CodedContestant({{}, "its products are somebody else's"}), {});
  EXPECT_EQ(library.outcome, Outcome::not_judged);
  EXPECT_EQ(library.sentence, "its products are somebody else's");
  const GateResult host = judged(PlantedContestant("host", honest_kernel), {});
  EXPECT_EQ(host.outcome, Outcome::not_judged);
  expect_words(host, "has none of its own");
  const GateResult no_tool = judged(CodedContestant({{kernel_code("staged", staged_resources, 0)}, ""}), {});
  EXPECT_EQ(no_tool.outcome, Outcome::not_judged);
  expect_words(no_tool, "set CUDA_HOME");
  EXPECT_EQ(judged(CodedContestant({{kernel_code("origin_like", origin_like_resources, 0)}, ""}), {}).outcome,
            Outcome::failed)
      << "the compiler's report alone is enough";
}

Pitch pitch_with(const std::string& audit) {
  return parse_pitch(
      "title = \"x\"\n[contestant]\noperation = \"dual_gemm\"\nstrategy = \"coded\"\n[baseline]\n"
      "strategy = \"two_pass\"\n[claim]\nspeedup = 2\nconfidence = 1\nreason = \"none\"\n[audit]\n" +
          audit,
      "p.toml");
}

TEST(AuditedGate, APitchMayExpectOtherThings) {
  const RecordedDisassembler recorded("staged.sass");
  const CodedContestant contestant({{kernel_code("staged", staged_resources, 0)}, ""});
  const Pitch strict = pitch_with("max_registers = 20\nmatrix = \"HGMMA\"\n");
  const GateResult result = judged(contestant, recorded.tools(), &strict);
  EXPECT_EQ(result.outcome, Outcome::failed);
  expect_words(result, "34 registers a thread, over the expected 20");
  expect_words(result, "0 matrix instructions of the kind HGMMA");
  const Pitch fitting = pitch_with("max_registers = 40\nmin_wide_share = 0.5\nshared_memory = true\n");
  EXPECT_EQ(judged(contestant, recorded.tools(), &fitting).outcome, Outcome::passed);
  EXPECT_NE(error_of([] { (void)pitch_with("speed = 9\n"); }).find("p.toml:12: `speed` in [audit]"), std::string::npos)
      << error_of([] { (void)pitch_with("speed = 9\n"); });
  EXPECT_NE(error_of([] { (void)pitch_with("max_registers = -1\n"); }).find("use a number that is not negative"),
            std::string::npos);
}

class LibraryCode : public ::testing::TestWithParam<std::tuple<const char*, Format>> {};

// What the library would launch on an H200, compiled here; only what is built in where there is no compiler.
TEST_P(LibraryCode, IsWhatItsStrategyPromises) {
  const auto& [strategy, format] = GetParam();
  DualGemmOptions options;
  options.strategy = strategy;
  for (const std::int64_t m : {1, 64, 256, 512}) {
    const DualGemmProblem problem{m, 4096, 7168, format, format, Format::fp16, {}};
    MachineCode code;
    try {
      code = machine_code_of(ops::planned_call(problem, options, device_spec("H200")), "sm_90a");
    } catch (const Error& error) {
      if (runtime::nvrtc_status().problem.empty()) {
        FAIL() << error.what();
      }
      GTEST_SKIP() << error.what();
    }
    ASSERT_FALSE(code.kernels.empty());
    EXPECT_GT(code.kernels[0].resources.registers, 0);
    EXPECT_GT(code.kernels[0].dynamic_shared_bytes, 0);
    EXPECT_EQ(code.kernels[0].expected.matrix_kind, "HGMMA");
    const GateResult result = judged(CodedContestant(code), find_disassembler());
    EXPECT_EQ(result.outcome, find_disassembler().found() ? Outcome::passed : Outcome::not_judged)
        << strategy << " for M = " << m << ": " << result.sentence;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, LibraryCode,
                         ::testing::Values(std::tuple("packed", Format::nvfp4), std::tuple("interleaved", Format::fp16),
                                           std::tuple("sequential", Format::fp16),
                                           std::tuple("pingpong", Format::fp16)),
                         [](const auto& tested) { return std::string(std::get<0>(tested.param)); });

TEST(LibraryMachineCode, ProductsOfAnotherLibraryAreSaidToBeThat) {
  DualGemmOptions options;
  options.strategy = "two_pass";
  const DualGemmProblem problem{64, 256, 256, Format::fp16, Format::fp16, Format::fp16, {}};
  const MachineCode code = machine_code_of(ops::planned_call(problem, options, device_spec("H200")), "sm_90a");
  EXPECT_TRUE(code.kernels.empty());
  EXPECT_NE(code.not_judged.find("cuBLASLt"), std::string::npos);
}

TEST(AttentionMachineCode, IsWhatItsStrategyPromises) {
  const AttentionProblem origin{.heads = 8, .kv_heads = 8, .queries = 512, .keys = 512, .head_dim = 64};
  for (const char* strategy : {"simple", "pipelined", "split", "rows", "rows_shared", "rows_coalesced"}) {
    MachineCode code;
    try {
      code = machine_code_of(ops::attention_call(origin, {.strategy = strategy}, device_spec("H200")), "sm_90a");
    } catch (const Error& error) {
      EXPECT_FALSE(runtime::nvrtc_status().problem.empty()) << strategy << ": " << error.what();
      continue;
    }
    EXPECT_GT(code.kernels.at(0).resources.registers, 0);
    const GateResult result = judged(CodedContestant(code), find_disassembler());
    EXPECT_EQ(result.outcome, find_disassembler().found() ? Outcome::passed : Outcome::not_judged)
        << strategy << ": " << result.sentence;
  }
}

/// Preparation and gathering are launches of the same call, with promises of their own. The products are those that are
/// built in: each of others would be compiled for ten seconds.
TEST(GroupedMachineCode, IsWhatItsStrategyPromises) {
  using Strategy = strategies::Strategy<strategies::gemm::ProductProblem>;
  const DeviceSpec& device = device_spec("H200");
  std::vector<std::pair<const Strategy*, strategies::Sample<strategies::gemm::ProductProblem>>> all;
  for (const Strategy* const strategy : strategies::gemm::strategies_of(Product::grouped, DeviceKind::cuda)) {
    for (const auto& sample : strategies::gemm::of_product(strategy->built_in(), strategies::gemm::Product::grouped)) {
      if (!strategy->unsupported_reason(sample.problem, device)) {
        all.emplace_back(strategy, sample);
      }
    }
  }
  ASSERT_FALSE(all.empty());
  if (runtime::nvrtc_status().problem.empty()) {
    all.push_back(all.front());
    strategies::gemm::ProductProblem& gathered = all.back().second.problem;
    gathered.layout = strategies::gemm::ProductRows::gathered;
    gathered.tokens = gathered.rows;
  }
  if (ops::built_in_cubins().empty() && !runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << "built without NVRTC: " << runtime::nvrtc_status().problem;
  }
  std::map<std::string, int> products;
  for (const auto& [strategy, sample] : all) {
    const strategies::PlannedCall call = strategy->plan(sample.problem, sample.knobs, device);
    const MachineCode code = machine_code_of(call, "sm_90a");
    ASSERT_FALSE(code.kernels.empty());
    const std::string kind = *call.knobs.find("numerics") == "fast" ? "QGMMA" : "HGMMA";
    EXPECT_EQ(code.kernels.back().expected.matrix_kind, kind) << code.kernels.back().kernel;
    ++products[kind];
    const GateResult result = judged(CodedContestant(code), find_disassembler());
    EXPECT_EQ(result.outcome, find_disassembler().found() ? Outcome::passed : Outcome::not_judged)
        << code.kernels.back().kernel << ": " << result.sentence;
  }
  EXPECT_GE(products["HGMMA"], 10);
  EXPECT_GE(products["QGMMA"], 4);
}

}  // namespace
}  // namespace thresher::arena
