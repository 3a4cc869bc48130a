#include "arena/gates/correctness.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "arena/planted.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

Problem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, Format format = Format::nvfp4,
                   Format out = Format::fp16) {
  return arena::problem_of(DualGemmProblem{m, n, k, format, format, out, {}});
}

/// The three by four tiles of a problem whose last row and column of tiles are ragged.
const Problem ragged = problem_of(129, 200, 208);

Finding judge(const Kernel& kernel, const Problem& problem = ragged,
              Distribution distribution = Distribution::full_range, std::uint64_t seed = 11) {
  FakeRig rig;
  return run_trial(make_trial(problem, distribution, {DeviceKind::cpu}, seed), PlantedContestant("planted", kernel),
                   rig)
      .finding;
}

/// What a kernel that forgets the activation and B2 (or B1) would write.
void write_product_alone(const KernelCall& call, bool gate_alone) {
  const reference::Outputs outputs =
      reference::dual_gemm_fast(call.problem, call.a, call.b1, call.b2, reference::whole(call.problem));
  call.write_all(gate_alone ? outputs.gate : outputs.up);
}

TEST(Correctness, AnHonestKernelPassesEveryDistributionAndFormat) {
  for (const Format format : {Format::nvfp4, Format::fp16, Format::bf16}) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      for (const Distribution distribution : all_distributions) {
        const Finding finding = judge(honest_kernel, problem_of(40, 72, 80, format, out), distribution);
        EXPECT_TRUE(finding.correct) << name(format) << " " << name(out) << " " << name(distribution) << ": "
                                     << finding.sentence;
      }
    }
  }
}

TEST(Correctness, AnHonestKernelPassesWithBlockedScalesAndOtherActivations) {
  for (const ActivationKind kind : {ActivationKind::gelu_tanh, ActivationKind::swiglu_clamped}) {
    Problem problem = problem_of(129, 40, 208);
    problem.as<ProductTask>().scale_layout = ScaleLayout::blocked;
    problem.as<ProductTask>().problem.activation->kind = kind;
    const Finding finding = judge(honest_kernel, problem);
    EXPECT_TRUE(finding.correct) << finding.sentence;
  }
}

TEST(Correctness, SwappedGateAndUpIsNamed) {
  const Kernel swapped = [](const KernelCall& call) {
    KernelCall other = call;
    std::swap(other.b1, other.b2);
    call.write_all(other.definition());
  };
  for (const Distribution distribution :
       {Distribution::contest, Distribution::full_range, Distribution::normal, Distribution::integers}) {
    EXPECT_EQ(judge(swapped, ragged, distribution).fault, "gate and up swapped") << name(distribution);
  }
  EXPECT_EQ(judge(swapped, problem_of(1, 8, 16)).fault, "gate and up swapped");
}

TEST(Correctness, AProductAloneIsNamed) {
  EXPECT_EQ(judge([](const KernelCall& call) { write_product_alone(call, true); }).fault,
            "A*B1 alone, without activation and up");
  EXPECT_EQ(judge([](const KernelCall& call) { write_product_alone(call, false); }).fault, "A*B2 alone, without gate");
}

TEST(Correctness, AStaleTileIsNamedWithItsPlace) {
  // The tile at [64, 128] is computed in the first call and kept from then on.
  std::vector<double> kept;
  const Finding finding = judge([&](const KernelCall& call) {
    std::vector<double> values = call.definition();
    const std::vector<double> fresh = values;
    for (std::int64_t row = 64; row < 128; ++row) {
      for (std::int64_t column = 128; column < 192 && !kept.empty(); ++column) {
        const auto i = static_cast<std::size_t>(row * 200 + column);
        values[i] = kept[i];
      }
    }
    kept = fresh;
    call.write_all(values);
  });
  EXPECT_EQ(finding.fault, "stale tile");
  EXPECT_NE(finding.sentence.find("[64, 128]"), std::string::npos) << finding.sentence;
}

TEST(Correctness, ATileKeptFromTheFirstCallIsNamed) {
  std::vector<double> kept;
  const Finding finding = judge([&](const KernelCall& call) {
    std::vector<double> values = call.definition();
    kept = kept.empty() ? values : kept;
    for (std::size_t i = 0; i < 64; ++i) {
      values[i] = kept[i];
    }
    for (std::size_t i = 200; i < 64 * 200; ++i) {
      values[i] = i % 200 < 64 ? kept[i] : values[i];
    }
    call.write_all(values);
  });
  EXPECT_EQ(finding.fault, "stale tile");
  EXPECT_NE(finding.sentence.find("[0, 0]"), std::string::npos) << finding.sentence;
}

TEST(Correctness, AWrongTileIsNamedWithItsPlace) {
  const Finding finding = judge([](const KernelCall& call) {
    honest_kernel(call);
    for (std::int64_t row = 0; row < 64; ++row) {
      for (std::int64_t column = 64; column < 128; ++column) {
        call.write(row, column, 1.0F);
      }
    }
  });
  EXPECT_EQ(finding.fault, "one tile wrong");
  EXPECT_NE(finding.sentence.find("worst tile starts at [0, 64]"), std::string::npos) << finding.sentence;
}

TEST(Correctness, OneElementOffAtTheRaggedEdgeIsNamedWithItsPlace) {
  const Finding finding = judge([](const KernelCall& call) {
    std::vector<double> values = call.definition();
    values.back() += 1 + std::abs(values.back());
    call.write_all(values);
  });
  EXPECT_EQ(finding.fault, "one element off at the ragged edge");
  EXPECT_NE(finding.sentence.find("[128, 199]"), std::string::npos) << finding.sentence;
}

TEST(Correctness, UnwrittenOutputsAreNamedWithTheirPlace) {
  const Finding finding = judge([](const KernelCall& call) {
    const std::vector<double> values = call.definition();
    for (std::int64_t row = 0; row < 129; ++row) {
      for (std::int64_t column = 0; column < 200; ++column) {
        if (row != 128 || column < 192) {
          call.write(row, column, static_cast<float>(values[static_cast<std::size_t>(row * 200 + column)]));
        }
      }
    }
  });
  EXPECT_EQ(finding.fault, "unwritten outputs");
  EXPECT_NE(finding.sentence.find("8 of 25800 elements of c were never written, the first at [128, 192]"),
            std::string::npos)
      << finding.sentence;
}

TEST(Correctness, NothingWrittenIsNamedThoughTheRightAnswerWereNaN) {
  EXPECT_EQ(judge([](const KernelCall&) {}, ragged, Distribution::specials).fault, "unwritten outputs");
}

TEST(Correctness, WritesPastTheEndAreNamedWithTheirBuffer) {
  const Finding finding = judge([](const KernelCall& call) {
    honest_kernel(call);
    call.write(129, 0, 1.0F);
  });
  EXPECT_EQ(finding.fault, "write past the end");
  EXPECT_EQ(finding.sentence, "writes past the end of c: 2 bytes, the nearest 1 byte away");
}

TEST(Correctness, WritesBeforeTheBeginningAreNamed) {
  const Finding finding = judge([](const KernelCall& call) {
    honest_kernel(call);
    call.write(0, -1, 1.0F);
  });
  EXPECT_EQ(finding.fault, "write before the beginning");
}

TEST(Correctness, ChangedInputsAreNamed) {
  const Finding finding = judge([](const KernelCall& call) {
    honest_kernel(call);
    static_cast<std::uint8_t*>(call.b2.data)[7] ^= 1U;
  });
  EXPECT_EQ(finding.fault, "input changed");
  EXPECT_NE(finding.sentence.find("b2"), std::string::npos);
}

TEST(Correctness, AWrongLastBitOfIntegersIsFound) {
  const Finding finding = judge(
      [](const KernelCall& call) {
        honest_kernel(call);
        auto* c = static_cast<std::uint16_t*>(call.c.data);
        c[1234] ^= 1U;
      },
      ragged, Distribution::integers);
  EXPECT_EQ(finding.fault, "one element off");
}

/// Whether the kernel that owns `seen` was given these activations before.
bool is_repeated(std::set<std::string>& seen, const KernelCall& call) {
  const auto bytes = static_cast<std::size_t>(call.a.elements() * bits(call.a.format) / 8);
  return !seen.emplace(static_cast<const char*>(call.a.data), bytes).second;
}

TEST(Correctness, RightAtFirstAndWrongLaterIsNamed) {
  std::set<std::string> seen;
  const Finding finding = judge([&seen](const KernelCall& call) {
    honest_kernel(call);
    if (is_repeated(seen, call)) {
      for (std::int64_t column = 0; column < 200; ++column) {
        call.write(0, column, 3.0F);
      }
    }
  });
  EXPECT_EQ(finding.fault, "right at first, wrong later");
}

TEST(Correctness, DifferentBitsFromRunToRunAreNamed) {
  std::set<std::string> seen;
  const Finding finding = judge([&seen](const KernelCall& call) {
    honest_kernel(call);
    static_cast<std::uint16_t*>(call.c.data)[0] ^= static_cast<std::uint16_t>(is_repeated(seen, call) ? 1 : 0);
  });
  EXPECT_EQ(finding.fault, "differs from run to run");
  EXPECT_NE(finding.sentence.find("[0, 0]"), std::string::npos);
}

TEST(Correctness, WhichCallsAreJudgedIsDrawn) {
  std::set<int> numbers;
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    std::map<std::string, int> first;
    (void)judge(
        [&](const KernelCall& call) {
          honest_kernel(call);
          const auto bytes = static_cast<std::size_t>(call.a.elements() * bits(call.a.format) / 8);
          const auto [before, is_new] = first.try_emplace({static_cast<const char*>(call.a.data), bytes}, call.number);
          if (!is_new) {
            numbers.insert(call.number);
          }
        },
        problem_of(7, 24, 64), Distribution::contest, seed);
  }
  EXPECT_EQ(numbers, (std::set{2, 3, 4})) << "where the inputs of a judged call come again";
}

TEST(Correctness, AnErrorOfTheContestantIsAFailedTrial) {
  const Finding finding = judge([](const KernelCall&) { throw Error(ErrorCode::unsupported, "no such format here"); });
  EXPECT_EQ(finding.fault, "an error");
  EXPECT_EQ(finding.sentence, "no such format here");
}

TEST(Correctness, LargeProblemsAreJudgedInEveryTileWithNoise) {
  // 256 x 1024 x 4096: over the limit for judging every element.
  const Problem large = problem_of(256, 1024, 4096);
  EXPECT_TRUE(judge(honest_kernel, large, Distribution::contest).correct);
  const Finding finding = judge(
      [](const KernelCall& call) {
        honest_kernel(call);
        for (std::int64_t row = 128; row < 192; ++row) {
          for (std::int64_t column = 512; column < 576; ++column) {
            call.write(row, column, 0.5F);
          }
        }
      },
      large, Distribution::contest);
  EXPECT_EQ(finding.fault, "one tile wrong");
  EXPECT_NE(finding.sentence.find("[128, 512]"), std::string::npos) << finding.sentence;
}

TEST(Correctness, TheGateStopsAtTheFirstMistakeAndSaysWhere) {
  Suite suite;
  suite.problems = {problem_of(7, 40, 48), ragged};
  suite.distributions = {Distribution::contest, Distribution::integers};
  FakeRig rig;
  std::size_t seen = 0;
  const PlantedContestant ragged_only("planted", [](const KernelCall& call) {
    honest_kernel(call);
    if (call.problem.m == 129) {
      call.write(128, 0, 1e4F);
    }
  });
  const GateResult gate = judge_correctness(suite, ragged_only, rig, 42, [&](std::size_t, std::size_t total) {
    ++seen;
    EXPECT_EQ(total, 4U);
  });
  EXPECT_EQ(seen, 4U);
  EXPECT_EQ(gate.outcome, Outcome::failed);
  EXPECT_NE(gate.sentence.find("one element off at the ragged edge"), std::string::npos) << gate.sentence;
  EXPECT_NE(gate.sentence.find("on 129x200x208 nvfp4*nvfp4->fp16 with contest inputs (seed 42)"), std::string::npos)
      << gate.sentence;
  const GateResult honest =
      judge_correctness(suite, PlantedContestant("honest", honest_kernel), rig, 42, [](auto, auto) {});
  EXPECT_EQ(honest.outcome, Outcome::passed);
  EXPECT_NE(honest.sentence.find("4 trials"), std::string::npos) << honest.sentence;
}

}  // namespace
}  // namespace thresher::arena
