// Kernels from outside on a GPU: a fault or a hang ends their process and nothing else.
#include <gtest/gtest.h>

#include "arena/user_kernels/user_kernel_tournament.hpp"
#include "support/gpu.hpp"

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

}  // namespace
}  // namespace thresher::arena
