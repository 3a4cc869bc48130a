// A gated MLP end to end on the CPU, through the public API.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <unordered_set>

#include "support/gated_mlp_case.hpp"
#include "thresher/thresher.hpp"

namespace thresher {
namespace {

using test::GatedMlpCase;

GatedMlpProblem mlp() { return {.tokens = 21, .hidden_size = 80, .intermediate_size = 48}; }

void run_and_expect_right(const GatedMlp& planned, GatedMlpCase& of, std::int64_t tokens) {
  const Workspace workspace(Device::cpu(), planned.workspace_bytes());
  of.out().poison();
  planned.run({}, of.x(tokens), of.out(tokens), workspace.data());
  const reference::Verdict verdict = of.judged(tokens, DeviceKind::cpu);
  EXPECT_TRUE(verdict.passed) << verdict.explain();
  EXPECT_EQ(verdict.elements, tokens * 80);
  EXPECT_TRUE(of.out().gaps_intact());
  EXPECT_TRUE(tokens == 21 || std::isnan(of.out().value(tokens, 0)));
}

std::vector<GatedMlpProblem> mlps_in_every_format() {
  std::vector<GatedMlpProblem> all(10, mlp());
  all[1].x = all[1].gate_up = all[1].intermediate = all[1].down = all[1].out = Format::fp16;
  all[1].activation.kind = ActivationKind::gelu_tanh;
  all[2].gate_up = all[2].down = Format::nvfp4;
  all[2].out = Format::fp32;
  all[3].x = all[3].gate_up = Format::fp8_block;
  all[3].down = Format::fp8_row;
  all[4].x = all[4].gate_up = Format::nvfp4;
  all[4].down = Format::fp8_tensor;
  all[4].intermediate = Format::fp16;
  all[4].activation.kind = ActivationKind::swiglu_clamped;
  for (const std::size_t i : {5U, 6U}) {
    all[i].x = all[i].gate_up = all[i].down = Format::fp8_block;
    all[i].intermediate_size = 256;
  }
  all[5].intermediate = Format::fp8_block;
  all[6].intermediate = Format::fp8_tensor;
  all[6].intermediate_scale = 0.25F;
  all[7].activation = usual_activation(ActivationKind::situ);
  all[8].activation.kind = all[9].activation.kind = ActivationKind::relu2;
  all[9].gate_up = all[9].down = Format::nvfp4;
  return all;
}

TEST(GatedMlpApi, IsRightInEveryFormatForAnyNumberOfTokens) {
  const Device cpu = Device::cpu();
  for (const GatedMlpProblem& problem : mlps_in_every_format()) {
    GatedMlpCase of(problem, {.out_row_gap = 3});
    const GatedMlp raw = plan(cpu, problem, of.weights());
    EXPECT_EQ(raw.problem(), problem);
    EXPECT_EQ(raw.down_strategy(), "by_expert");
    EXPECT_FALSE(raw.gate_up_strategy().empty());
    const PackedGatedMlpWeights weights = pack(cpu, of.weights());
    EXPECT_EQ(weights.device().id(), cpu.id());
    const GatedMlp packed = plan(cpu, problem, weights);
    for (const std::int64_t tokens : {21, 1, 16, 0}) {
      run_and_expect_right(raw, of, tokens);
      run_and_expect_right(packed, of, tokens);
    }
  }
}

void expect_sentence(const char* sentence, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << sentence;
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), sentence);
  }
}

TEST(GatedMlpApi, RefusesWhatItCannotRun) {
  const Device cpu = Device::cpu();
  GatedMlpCase of(mlp());
  const auto refused = [&](const char* sentence, const std::function<void(GatedMlpProblem&)>& change) {
    GatedMlpProblem problem = mlp();
    change(problem);
    expect_sentence(sentence, [&] { (void)plan(cpu, problem, of.weights()); });
  };
  refused("the weights have a gate, but problem.activation is relu2",
          [](GatedMlpProblem& p) { p.activation.kind = ActivationKind::relu2; });
  refused("problem.hidden_size is 0, expected 1 to 2147483647", [](GatedMlpProblem& p) { p.hidden_size = 0; });
  refused("problem.intermediate_size is 40, expected a multiple of 16 for nvfp4 operands", [](GatedMlpProblem& p) {
    p.intermediate_size = 40;
    p.down = Format::nvfp4;
  });
  refused("problem.intermediate_size is 48, expected a multiple of 128 for an intermediate in fp8_block",
          [](GatedMlpProblem& p) { p.intermediate = Format::fp8_block; });
  refused("down: b is bf16, but the problem says fp16", [](GatedMlpProblem& p) { p.down = Format::fp16; });
  expect_sentence("gate and up: b1 (gate) is [48, 80], expected [32, 80]", [&] {
    GatedMlpProblem problem = mlp();
    problem.intermediate_size = 32;
    (void)plan(cpu, problem, of.weights());
  });
  expect_sentence("down: b has 1 dimensions, expected 2", [&] {
    GatedMlpWeights weights = of.weights();
    weights.down.rank = 1;
    (void)plan(cpu, mlp(), weights);
  });
  const GatedMlp planned = plan(cpu, mlp(), of.weights());
  const Workspace workspace(cpu, planned.workspace_bytes());
  expect_sentence("x has 22 rows, expected 0 to 21, the tokens that the plan was made for",
                  [&] { planned.run({}, of.x(22), of.out(21), workspace.data()); });
  expect_sentence("out shares memory with down, expected an output apart from every operand", [&] {
    Tensor out = of.out(21);
    out.data = of.weights().down.data;
    planned.run({}, of.x(21), out, workspace.data());
  });
  EXPECT_THROW(planned.run({}, of.x(21), of.out(21), nullptr), Error);
  EXPECT_TRUE(std::isnan(of.out().value(0, 0)));
}

TEST(GatedMlpApi, EqualProblemsHaveEqualHashes) {
  std::unordered_set<GatedMlpProblem> known{mlp()};
  EXPECT_TRUE(known.contains(mlp()));
  GatedMlpProblem other = mlp();
  other.intermediate = Format::fp16;
  EXPECT_FALSE(known.contains(other));
}

}  // namespace
}  // namespace thresher
