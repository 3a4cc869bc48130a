// Kernels from outside on the CPU: judged in a process of their own, whose end is a failed gate and nothing else.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "arena/expect_error.hpp"
#include "arena/pitches/expression.hpp"
#include "arena/user_kernels/user_kernel_tournament.hpp"
#include "formats/numbers.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena {
namespace {

using OwnKernel = OwnTournament;

/// The example's own suite is held by tests/cli/bring_your_own_test.cpp.
TEST_F(OwnKernel, TheExamplePassesEveryGateThatCanBeJudged) {
  const Pitch pitch = load_pitch(example_folder / "naive-cpu.toml");
  std::string suite = tiny_suite;
  suite.erase(suite.find("timed = false\n"), std::string("timed = false\n").size());
  const TournamentResult result = hold({pitch}, suite);
  const Entry& naive = entry(result, "naive");
  for (const GateKind kind : {GateKind::feasible, GateKind::compiles, GateKind::correct}) {
    EXPECT_EQ(gate(naive, kind).outcome, Outcome::passed) << name(kind) << ": " << gate(naive, kind).sentence;
  }
  // The gates after these look at this machine's own clock, which may stall.
  EXPECT_NE(gate(naive, GateKind::honest).outcome, Outcome::not_judged) << gate(naive, GateKind::honest).sentence;
  EXPECT_EQ(gate(naive, GateKind::audited).sentence,
            "the audit reads GPU machine code, and this kernel is for the CPU");
  // A clock that stalled between two passes may fail the gate after times were taken.
  EXPECT_TRUE(gate(naive, GateKind::timed).outcome != Outcome::passed || !naive.measurements.empty());
  EXPECT_EQ(naive.clocks.clock, "wall clock");
  EXPECT_NE(nlohmann::json::parse(naive.pitch)["kernel"]["text"].get<std::string>().find("extern \"C\""),
            std::string::npos)
      << "the ledger keeps what was run";
  EXPECT_EQ(gate(entry(result, "two_pass"), GateKind::correct).outcome, Outcome::passed);
  const runtime::Confined& confined = std::get<CorrectEvidence>(gate(naive, GateKind::correct).evidence).confined;
  EXPECT_EQ(confined.protections.size(), 5U) << "what holds its process is told";
  EXPECT_EQ(gate(naive, GateKind::correct).sentence.find("not wholly confined") == std::string::npos, confined.whole())
      << gate(naive, GateKind::correct).sentence;
}

TEST_F(OwnKernel, AWrongOneFailsWithItsMistakeNamed) {
  const Pitch wrong = host_pitch("wrong", R"(
    for (long long row = 0; row < call->m; ++row)
      for (long long column = 0; column < call->n; ++column) {
        float gate = 0;
        for (long long k = 0; k < call->k; ++k)
          gate += thresher_own_load(&call->a, row, k) * thresher_own_load(&call->b1, column, k);
        thresher_own_store(call, row, column, gate);
      })");
  const TournamentResult result = hold({wrong}, tiny_suite);
  EXPECT_EQ(plain_verdict(entry(result, "wrong")), "failed at correct");
  EXPECT_NE(entry(result, "wrong").sentence.find("A*B1 alone, without activation and up"), std::string::npos)
      << entry(result, "wrong").sentence;
}

TEST_F(OwnKernel, AWarmSuiteIsTimedWarm) {
  std::string suite = tiny_suite;
  suite.replace(suite.find("timed = false"), 13, "cache = \"warm\"");
  const TournamentResult result = hold({load_pitch(example_folder / "naive-cpu.toml")}, suite);
  const Entry& naive = entry(result, "naive");
  // Unless others use this machine's processors too.
  ASSERT_EQ(naive.measurements.empty(), gate(naive, GateKind::timed).outcome == Outcome::not_judged) << naive.sentence;
  for (const Measurement& measurement : naive.measurements) {
    EXPECT_FALSE(is_cold(measurement.mode) && measurement.rounds > 0) << name(measurement.mode);
  }
}

TEST_F(OwnKernel, ACrashAHangAndAnExitFailTheirGateAndNothingElse) {
  const std::vector<Pitch> pitches{
      host_pitch("crashes", "*(volatile int*)nullptr = 1;"),
      host_pitch("hangs", "for (volatile int forever = 1; forever != 0;) {}", "time_limit_s = 2"),
      host_pitch("leaves", "std::exit(3);"),
      host_pitch("writes_all_over", R"(
        for (long long i = -4096; i < 1 << 20; ++i) ((volatile char*)call->c)[i * 256] = 1;)"),
      load_pitch(example_folder / "naive-cpu.toml"),
  };
  const TournamentResult result = hold(pitches, tiny_suite);
  EXPECT_EQ(plain_verdict(entry(result, "crashes")), "failed at correct");
  EXPECT_NE(entry(result, "crashes").sentence.find("the kernel's process was killed by signal 11"), std::string::npos)
      << entry(result, "crashes").sentence;
  EXPECT_NE(entry(result, "crashes").sentence.find("with contest inputs"), std::string::npos);
  EXPECT_EQ(plain_verdict(entry(result, "hangs")), "failed at correct");
  EXPECT_NE(entry(result, "hangs").sentence.find("a call took longer than the 2 s that it may"), std::string::npos)
      << entry(result, "hangs").sentence;
  EXPECT_EQ(plain_verdict(entry(result, "leaves")), "failed at correct");
  EXPECT_NE(entry(result, "leaves").sentence.find("ended with status 3"), std::string::npos)
      << entry(result, "leaves").sentence;
  EXPECT_EQ(plain_verdict(entry(result, "writes_all_over")), "failed at correct");
  for (const char* name : {"crashes", "leaves"}) {
    EXPECT_EQ(gate(entry(result, name), GateKind::compiles).outcome, Outcome::passed) << name;
    EXPECT_EQ(gate(entry(result, name), GateKind::timed).outcome, Outcome::skipped) << name;
  }
  EXPECT_EQ(gate(entry(result, "naive"), GateKind::correct).outcome, Outcome::passed)
      << entry(result, "naive").sentence;
  EXPECT_TRUE(result.ledger_problem.empty());
}

TEST_F(OwnKernel, WhatDoesNotCompileSaysTheFirstError) {
  const TournamentResult result =
      hold({host_pitch("broken", "undeclared = 1;"), pitch_of("nameless", "nameless.cpp", "void other() {}", "")},
           tiny_suite);
  EXPECT_EQ(plain_verdict(entry(result, "broken")), "failed at compiles");
  EXPECT_NE(entry(result, "broken").sentence.find("broken.cpp does not compile: "), std::string::npos);
  EXPECT_NE(entry(result, "broken").sentence.find("undeclared"), std::string::npos) << entry(result, "broken").sentence;
  EXPECT_EQ(entry(result, "nameless").sentence, "nameless.cpp does not compile: it has no extern \"C\" function mine");
}

TEST_F(OwnKernel, OneMadeForOtherFormatsHasNotFailed) {
  const TournamentResult result = hold({host_pitch("picky", "", "formats = [\"bf16*bf16->bf16\"]")}, tiny_suite);
  EXPECT_EQ(plain_verdict(entry(result, "picky")), "not for these formats");
  EXPECT_FALSE(result.any_gate_failed());
  EXPECT_EQ(entry(result, "picky").sentence, "the pitch enters mine for bf16*bf16->bf16, not fp16*fp16->fp16");
}

constexpr const char* launch = "grid = [\"1\"]\nblock = [32]\n";

TEST_F(OwnKernel, WithoutAGpuACudaKernelIsCompiledAndAuditedAndNotRun) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const TournamentResult result = hold({load_pitch(example_folder / "naive.toml")}, tiny_suite);
  const Entry& naive = entry(result, "naive");
  EXPECT_EQ(plain_verdict(naive), "not judged");
  EXPECT_EQ(gate(naive, GateKind::compiles).outcome, Outcome::passed) << gate(naive, GateKind::compiles).sentence;
  EXPECT_NE(gate(naive, GateKind::compiles).sentence.find("naive.cu by NVRTC"), std::string::npos);
  EXPECT_NE(gate(naive, GateKind::audited).outcome, Outcome::failed) << gate(naive, GateKind::audited).sentence;
  for (const GateKind kind : {GateKind::correct, GateKind::honest, GateKind::timed, GateKind::verdict}) {
    EXPECT_EQ(gate(naive, kind).outcome, Outcome::not_judged) << name(kind);
    EXPECT_NE(gate(naive, kind).sentence.find("no GPU"), std::string::npos) << gate(naive, kind).sentence;
  }
}

// The kernel that this project answers, entered by its author.
TEST_F(OwnKernel, AKernelLikeTheOriginsFailsAtAudited) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const char* const source = R"(#include "thresher/own_kernel.h"
extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  extern __shared__ float tile[];
  float logits[512];
  for (long long k = 0; k < call.k && k < 512; ++k) logits[k] = thresher_own_load(&call.a, 0, k);
  float sum = 0;
  for (long long k = 0; k < call.k && k < 512; ++k) sum += logits[(k * 7 + threadIdx.x) % 512];
  thresher_own_store(&call, 0, threadIdx.x, sum);
})";
  const TournamentResult result =
      hold({pitch_of("origin_like", "origin_like.cu", source, std::string(launch) + "shared_bytes = \"48 * 1024\"")},
           tiny_suite);
  const Entry& like = entry(result, "origin_like");
  EXPECT_EQ(plain_verdict(like), "failed at audited") << like.sentence;
  EXPECT_NE(like.sentence.find("2048 bytes a thread lie in local memory (as much as an array of 512 floats)"),
            std::string::npos)
      << like.sentence;
}

TEST_F(OwnKernel, ACudaKernelThatDoesNotCompileSaysTheFirstError) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const TournamentResult result = hold(
      {pitch_of("broken", "broken.cu", "extern \"C\" __global__ void mine() { undeclared = 1; }", launch)}, tiny_suite);
  EXPECT_EQ(plain_verdict(entry(result, "broken")), "failed at compiles");
  EXPECT_NE(entry(result, "broken").sentence.find("broken.cu does not compile: broken.cu(1): error"), std::string::npos)
      << entry(result, "broken").sentence;
}

TEST_F(OwnKernel, BadPitchesAreRefusedInOneSentence) {
  const auto refusal = [&](const std::string& file, const std::string& table) {
    return error_of([&] { (void)pitch_of("mine", file, "", table); });
  };
  const auto expect = [](const std::string& said, const std::string& words) {
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_NE(said.find("pitch.toml:"), std::string::npos) << said;
  };
  expect(refusal("mine.rs", ""), "expected a .cu file for a GPU, or a .cpp or .py file for the CPU");
  expect(refusal("mine.cu", ""), "`grid` in [kernel] is missing");
  expect(refusal("mine.cu", "grid = [\"n / 0\"]\nblock = [32]"), "it divides by zero");
  expect(refusal("mine.cu", "grid = [\"tiles\"]\nblock = [32]"), "\"tiles\" is none of m, n, k, div_up, min and max");
  expect(refusal("mine.cu", "grid = [\"n / 128\"]\nblock = [32]"), "but must be at least 1");
  expect(refusal("mine.cu", "grid = [\"1\"]\nblock = [64, 32]"), "whose product is at most 1024");
  expect(refusal("mine.cu", std::string(launch) + "time_limit_s = 0"), "must be greater than 0");
  expect(refusal("mine.cpp", "grid = [\"1\"]"), "grid");
  expect(refusal("mine.py", "framework = \"jax\""),
         "`framework` in [kernel] is \"jax\", expected \"numpy\" or \"torch\"");
  expect(refusal("mine.py", "options = [\"-O3\"]"),
         "`options` in [kernel] is for a compiler, which a .py file has none of");
  expect(refusal("mine.py", "grid = [\"1\"]"), "grid");
  expect(refusal("mine.cpp", "framework = \"numpy\""), "framework");
  std::filesystem::remove(folder_.path() / "mine.cu");
  const std::string missing = error_of([&] {
    (void)parse_pitch(
        "title = \"x\"\n[contestant]\noperation = \"dual_gemm\"\nstrategy = \"mine\"\n[baseline]\nstrategy "
        "= \"two_pass\"\n[claim]\nspeedup = 1\nconfidence = 0\nreason = \"none\"\n[kernel]\nsource = "
        "\"nowhere.cu\"\nentry = \"mine\"\n",
        (folder_.path() / "pitch.toml").string());
  });
  expect(missing, "nowhere.cu: the file cannot be read: No such file or directory");
  EXPECT_NE(error_of([&] { (void)hold({host_pitch("two_pass", "")}, tiny_suite); }).find("contestant"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)hold({host_pitch("interleaved", "")}, tiny_suite);
            }).find("interleaved is a strategy of Thresher's own"),
            std::string::npos);
}

TEST_F(OwnKernel, WithoutTheCommandThereIsNoProcess) {
  TournamentOptions options;
  options.suites = {parse_suite(tiny_suite, "small", "small.toml")};
  options.pitches = {host_pitch("mine", "")};
  options.server = {"/nowhere/thresher", "serve-calls"};
  const std::unique_ptr<Rig> rig = make_rig("cpu");
  Ledger ledger(folder_.path() / "ledger.sqlite", Ledger::Access::write);
  Progress progress = Progress::silent();
  EXPECT_NE(error_of([&] {
              (void)hold_tournament(options, *rig, *library_registry(rig->device()), ledger, progress);
            }).find("could not be started"),
            std::string::npos);
}

TEST(OwnExpression, ReckonsAsOneWould) {
  const user_kernels::Extents shape{{"m", 5}, {"n", 300}, {"k", 64}};
  for (const auto& [text, value] : {std::pair<const char*, std::int64_t>{"1", 1},
                                    {"n", 300},
                                    {" ( m + 15 ) / 16 * 16", 16},
                                    {"m + n * k", 5 + 300 * 64},
                                    {"n - m - k", 231},
                                    {"div_up(n, 128)", 3},
                                    {"min(m, 3) * max(n, 2 * k)", 900},
                                    {"div_up(m * n, min(k, 32))", 47}}) {
    EXPECT_EQ(user_kernels::evaluate(text, shape), value) << text;
  }
  for (const char* text : {"", "m +", "m n", "(m", "m)", "x", "min(m)", "1/0", "div_up(m, 0)", "9223372036854775807",
                           "4611686018427387904 * 2", "-m", "m..n"}) {
    EXPECT_THROW((void)user_kernels::evaluate(text, shape), Error) << text;
  }
  EXPECT_THROW((void)user_kernels::evaluate(std::string(100000, '('), shape), Error);
}

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// The header's conversions against the library's, for every code and around every rounding.
TEST(OwnHeader, ConvertsAsTheLibraryDoes) {
  for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
    const auto pattern = static_cast<std::uint16_t>(code);
    const float wide = formats::fp16_to_float(pattern);
    ASSERT_EQ(bits_of(thresher_own_fp16_to_float(pattern)), bits_of(wide)) << code;
    for (const std::int32_t step : {-1, 0, 1}) {
      for (const std::uint32_t half : {0U, 0x1000U, 0x2000U}) {
        const float near = std::bit_cast<float>(bits_of(wide) + half + static_cast<std::uint32_t>(step));
        if (near != near) {
          ASSERT_EQ(thresher_own_float_to_fp16(near) & 0x7C00U, 0x7C00U);
        } else {
          ASSERT_EQ(thresher_own_float_to_fp16(near), formats::float_to_fp16(near)) << near;
        }
      }
    }
    const float from_bf16 = std::bit_cast<float>(code << 16 | 0x8000U);
    if (from_bf16 == from_bf16) {
      ASSERT_EQ(thresher_own_float_to_bf16(from_bf16), formats::float_to_bf16(from_bf16)) << from_bf16;
    }
  }
  for (std::uint32_t code = 0; code <= 0xFF; ++code) {
    EXPECT_EQ(bits_of(thresher_own_e4m3_to_float(code)),
              bits_of(formats::e4m3_to_float(static_cast<std::uint8_t>(code))));
  }
  for (std::uint32_t code = 0; code <= 0xF; ++code) {
    EXPECT_EQ(bits_of(thresher_own_e2m1_to_float(code)),
              bits_of(formats::e2m1_to_float(static_cast<std::uint8_t>(code))));
  }
}

}  // namespace
}  // namespace thresher::arena
