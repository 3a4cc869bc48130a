// Kernels from outside on a GPU: a fault or a hang ends their process and nothing else.
#include <gtest/gtest.h>

#include <cstdio>

#include "arena/user_kernels/user_kernel_tournament.hpp"
#include "support/gpu.hpp"
#include "support/naive_kernel.hpp"

namespace thresher::arena {
namespace {

using OwnCudaKernel = OwnTournament;

TEST_F(OwnCudaKernel, TheExamplePassesEveryGateThatCanBeJudged) {
  SKIP_WITHOUT_GPU();
  const TournamentResult result =
      hold({load_pitch(example_folder / "naive.toml")}, slurp(example_folder / "small.toml"), "cuda:0");
  const Entry& naive = entry(result, "naive");
  for (const GateKind kind :
       {GateKind::feasible, GateKind::compiles, GateKind::correct, GateKind::honest, GateKind::timed}) {
    EXPECT_EQ(gate(naive, kind).outcome, Outcome::passed) << name(kind) << ": " << gate(naive, kind).sentence;
  }
  EXPECT_NE(gate(naive, GateKind::audited).outcome, Outcome::failed) << gate(naive, GateKind::audited).sentence;
}

TEST_F(OwnCudaKernel, ItsProcessIsConfined) {
  SKIP_WITHOUT_GPU();
  const std::string suite =
      "title = \"Small\"\noperation = \"dual_gemm\"\ndistributions = [\"contest\"]\ntimed = false\n"
      "[[problem]]\nm = 33\nn = 72\nk = 64\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";
  const TournamentResult result = hold({load_pitch(example_folder / "naive.toml")}, suite, "cuda:0");
  const GateResult& correct = gate(entry(result, "naive"), GateKind::correct);
  ASSERT_EQ(correct.outcome, Outcome::passed) << correct.sentence;
  const runtime::Confined& confined = std::get<CorrectEvidence>(correct.evidence).confined;
  ASSERT_EQ(confined.protections.size(), 5U);
  for (const runtime::Protection& protection : confined.protections) {
    std::printf("%s: %s%s\n", protection.what.c_str(), protection.in_force ? "" : "(missing) ",
                protection.sentence.c_str());
    EXPECT_TRUE(protection.in_force || protection.what == "files" || protection.what == "privileges")
        << protection.what << ": " << protection.sentence;
  }
}

TEST_F(OwnCudaKernel, AFaultAndAHangFailTheirGateAndNothingElse) {
  SKIP_WITHOUT_GPU();
  const std::string launch = "grid = [\"1\"]\nblock = [32]\n";
  const std::string head =
      "#include \"thresher/own_kernel.h\"\nextern \"C\" __global__ void mine(thresher_own_dual_gemm call) {\n";
  const TournamentResult result = hold(
      {pitch_of("faults", "faults.cu", head + "*(volatile int*)8 = threadIdx.x; }\n", launch),
       pitch_of("hangs", "hangs.cu", head + "while (((volatile unsigned short*)call.a.values)[0] != 0x7E77) {} }\n",
                launch + "time_limit_s = 5"),
       load_pitch(example_folder / "naive.toml")},
      tiny_suite, "cuda:0");
  EXPECT_EQ(plain_verdict(entry(result, "faults")), "failed at correct") << entry(result, "faults").sentence;
  EXPECT_EQ(plain_verdict(entry(result, "hangs")), "failed at correct") << entry(result, "hangs").sentence;
  EXPECT_NE(entry(result, "hangs").sentence.find("a call took longer than the 5 s that it may"), std::string::npos)
      << entry(result, "hangs").sentence;
  EXPECT_EQ(plain_verdict(entry(result, "naive")), "not timed") << entry(result, "naive").sentence;
}

/// A kernel that may look before it computes, and remember afterwards.
std::string cheating_source(const std::string& before, const std::string& after) {
  return naive_kernel() + R"(
__device__ float answers[1 << 20];
__device__ unsigned keys[1 << 20];
extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= call.m || column >= call.n) return;
  const unsigned* const words = (const unsigned*)call.a.values + row * call.k / 2;
  const unsigned slot = (unsigned)(((unsigned long long)call.c >> 8) * 2654435761u + row * call.n + column) % (1u << 20);
  )" + before +
         "\n  const float value = naive_element(&call, row, column);\n  " + after +
         "\n  thresher_own_store(&call, row, column, value);\n}\n";
}

struct Cheat {
  const char* name;
  const char* before;
  const char* after;
};

// Of each kind two: answers kept under a fingerprint, work left out after so many calls, and what was given made easy.
constexpr Cheat cheats[] = {
    {"knows_rows_by_their_first_bytes",
     "if (keys[slot] == (words[0] | 1u)) { thresher_own_store(&call, row, column, answers[slot]); return; }",
     "answers[slot] = value; keys[slot] = words[0] | 1u;"},
    {"knows_rows_by_their_last_bytes",
     "const unsigned key = words[call.k / 2 - 1] | 1u;"
     "if (keys[slot] == key) { thresher_own_store(&call, row, column, answers[slot]); return; }",
     "answers[slot] = value; keys[slot] = key;"},
    {"leaves_columns_out_after_many_calls", "if (atomicAdd(&keys[0], 1u) > 4000000u && column % 10 != 0) return;", ""},
    {"writes_zeros_after_fifty_calls",
     "if (row == 0 && column == 0) atomicAdd(&keys[1], 1u);"
     "if (keys[1] > 50u) { thresher_own_store(&call, row, column, 0.0F); return; }",
     ""},
    {"makes_its_tokens_zero", "",
     "if (column == call.n - 1) { for (long long k = 0; k < call.k / 2; ++k) ((unsigned*)words)[k] = 0; }"},
    {"makes_its_weights_zero", "",
     "if (row == call.m - 1) { for (long long k = 0; k < call.k; ++k)"
     " ((unsigned short*)call.b1.values)[column * call.k + k] = 0; }"},
};

TEST_F(OwnCudaKernel, CheatsFailTheirGateInWordsThatSayWhy) {
  SKIP_WITHOUT_GPU();
  constexpr const char* suite =
      "title = \"One\"\noperation = \"dual_gemm\"\ndistributions = [\"contest\", \"full_range\"]\n"
      "[[problem]]\nm = 64\nn = 512\nk = 1024\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n";
  const std::string launch = "grid = [\"div_up(n, 32)\", \"div_up(m, 8)\"]\nblock = [32, 8]\n";
  std::vector<Pitch> pitches;
  for (const Cheat& cheat : cheats) {
    pitches.push_back(
        pitch_of(cheat.name, std::string(cheat.name) + ".cu", cheating_source(cheat.before, cheat.after), launch));
  }
  pitches.push_back(pitch_of("honest", "honest.cu", cheating_source("", ""), launch));
  const TournamentResult result = hold(pitches, suite, "cuda:0");
  for (const Cheat& cheat : cheats) {
    const Entry& found = entry(result, cheat.name);
    EXPECT_EQ(found.verdict, Verdict::failed) << cheat.name << ": " << found.sentence;
    std::printf("%s: %s: %s\n", cheat.name, plain_verdict(found).c_str(), found.sentence.c_str());
  }
  EXPECT_NE(entry(result, "honest").verdict, Verdict::failed) << entry(result, "honest").sentence;
}

}  // namespace
}  // namespace thresher::arena
