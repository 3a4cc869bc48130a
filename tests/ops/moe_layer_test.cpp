// A layer of experts end to end on the CPU, through the public API.
#include <gtest/gtest.h>

#include <cmath>
#include <unordered_set>

#include "support/moe_case.hpp"
#include "support/quantize_case.hpp"
#include "thresher/thresher.hpp"

namespace thresher {
namespace {

using test::MoeCase;
using test::random_choices;

MoeProblem layer() { return {.experts = 5, .tokens = 19, .top_k = 3, .hidden_size = 48, .intermediate_size = 32}; }

void expect_right(MoeCase& of, const MoeTensors& tensors) {
  const reference::Verdict verdict = of.judged(tensors, DeviceKind::cpu);
  EXPECT_TRUE(verdict.passed) << verdict.explain();
  EXPECT_EQ(verdict.elements, tensors.out.elements());
  EXPECT_TRUE(of.out().gaps_intact());
}

std::vector<MoeProblem> in_every_format() {
  std::vector<MoeProblem> all(12, layer());
  all[0].x = all[0].gate_up = all[0].intermediate = all[0].down = all[0].rows = all[0].out = Format::fp16;
  all[1].gate_up = all[1].down = Format::nvfp4;
  all[1].intermediate = Format::fp16;
  all[1].rows = Format::fp32;
  all[2].x = all[2].gate_up = all[2].down = Format::fp8_block;
  all[2].out = Format::fp32;
  all[3].x = all[3].gate_up = all[3].down = Format::nvfp4;
  all[3].rows = all[3].out = Format::fp32;
  all[4].x = Format::fp8_row;
  all[4].gate_up = Format::fp8_tensor;
  all[4].activation.kind = ActivationKind::swiglu_clamped;
  all[4].gate_up_bias = all[4].down_bias = true;
  all[4].rows = Format::fp32;
  all[4].out = Format::fp16;
  for (std::size_t i = 5; i < 9; ++i) {
    all[i].x = all[i].gate_up = all[i].down = Format::fp8_block;
    all[i].intermediate_size = 256;
    all[i].rows = Format::fp32;
  }
  all[5].intermediate = Format::fp8_block;
  all[6].intermediate = Format::fp8_tensor;
  all[6].intermediate_scale = 0.25F;
  all[7].intermediate = Format::fp8_row;
  all[7].gate_up_bias = all[7].down_bias = true;
  all[8].intermediate = Format::nvfp4;
  all[8].intermediate_scale = 0.01F;
  all[9].activation = usual_activation(ActivationKind::situ);
  all[10].activation.kind = all[11].activation.kind = ActivationKind::relu2;
  all[11].gate_up = all[11].down = Format::nvfp4;
  all[11].gate_up_bias = all[11].down_bias = true;
  return all;
}

TEST(MoeLayerApi, IsRightInEveryFormat) {
  const Device cpu = Device::cpu();
  for (const MoeProblem& problem : in_every_format()) {
    for (const bool is_packed : {false, true}) {
      MoeCase of(problem, random_choices(problem, 4), 3);
      const MoeLayer planned = is_packed ? plan(cpu, problem, pack(cpu, of.gate_up()), pack(cpu, of.down()))
                                         : plan(cpu, problem, of.gate_up(), of.down());
      EXPECT_EQ(planned.problem(), problem);
      const Workspace workspace(cpu, planned.workspace_bytes());
      planned.run({}, of.tensors(), workspace.data());
      expect_right(of, of.tensors());
    }
  }
}

/// The bits of tokens that were quantized before.
TEST(MoeLayerApi, QuantizesTokensItself) {
  const Device cpu = Device::cpu();
  for (const Format to : {Format::fp8_block, Format::fp8_row}) {
    MoeProblem problem = layer();
    problem.x = problem.gate_up = to;
    test::QuantizeCase tokens({.rows = problem.tokens, .columns = problem.hidden_size, .out = to}, {.gap = 8});
    plan(cpu, tokens.problem).run({}, tokens.x, tokens.out);
    MoeCase of(problem, random_choices(problem, 6));
    const auto result = [&](const MoeProblem& planned_problem, const Tensor& x) {
      of.out().poison();
      MoeTensors tensors = of.tensors();
      tensors.x = x;
      const MoeLayer planned = plan(cpu, planned_problem, of.gate_up(), of.down());
      const Workspace workspace(cpu, planned.workspace_bytes());
      planned.run({}, tensors, workspace.data());
      return of.out().bytes();
    };
    const auto quantized_before = result(problem, tokens.out);
    problem.x = Format::bf16;
    problem.quantized_x = to;
    EXPECT_EQ(result(problem, tokens.x), quantized_before) << name(to);
  }
}

TEST(MoeLayerApi, TakesGateAndUpInOneTensor) {
  const Device cpu = Device::cpu();
  for (const GateUpOrder order : all_gate_up_orders) {
    MoeCase of(layer(), random_choices(layer(), 5), 0, order);
    const MoeLayer planned = plan(cpu, layer(), of.gate_up(), of.down());
    const Workspace workspace(cpu, planned.workspace_bytes());
    planned.run({}, of.tensors(), workspace.data());
    expect_right(of, of.tensors());
  }
}

/// All choices of one expert, each token's of the same ones, none at all, and any; of fewer tokens, and of none.
TEST(MoeLayerApi, OnePlanServesAllChoicesAndFewerTokens) {
  const Device cpu = Device::cpu();
  MoeCase of(layer(), random_choices(layer(), 6));
  const MoeLayer planned = plan(cpu, layer(), of.gate_up(), of.down());
  const Workspace workspace(cpu, planned.workspace_bytes());
  const std::vector<std::function<std::int32_t(std::size_t)>> kinds{
      [](std::size_t) { return 4; }, [](std::size_t choice) { return static_cast<std::int32_t>(choice % 3); },
      [](std::size_t) { return -7; }, [](std::size_t choice) { return static_cast<std::int32_t>(choice * 7 % 5); }};
  for (const auto& kind : kinds) {
    for (const std::int64_t tokens : {19, 1, 8, 0}) {
      for (std::size_t choice = 0; choice < of.ids().size(); ++choice) {
        of.ids()[choice] = kind(choice);
      }
      of.out().poison();
      planned.run({}, of.tensors(tokens), workspace.data());
      expect_right(of, of.tensors(tokens));
      EXPECT_TRUE(tokens == 19 || std::isnan(of.out().value(tokens, 0)));
    }
  }
}

TEST(MoeLayerApi, SkippedChoicesAddNothing) {
  const Device cpu = Device::cpu();
  MoeCase of(layer(), random_choices(layer(), 7));
  const MoeLayer planned = plan(cpu, layer(), of.gate_up(), of.down());
  const Workspace workspace(cpu, planned.workspace_bytes());
  for (std::size_t choice = 0; choice < 9; ++choice) {
    of.ids()[choice] = choice % 2 == 0 ? -1 : 5;
    of.weights()[choice] = NAN;
  }
  planned.run({}, of.tensors(), workspace.data());
  expect_right(of, of.tensors());
  EXPECT_EQ(of.out().value(0, 0), 0.0);
  EXPECT_EQ(of.out().value(1, 0), 0.0);
  EXPECT_EQ(of.out().value(2, 47), 0.0);
}

TEST(MoeLayerApi, NanStaysWithItsToken) {
  const Device cpu = Device::cpu();
  MoeCase of(layer(), std::vector<std::int32_t>(57, 2));
  constexpr std::uint16_t nan = 0x7FC0;
  of.x().set_pattern(5, 11, nan);
  of.weights()[6 * 3 + 1] = NAN;
  const MoeLayer planned = plan(cpu, layer(), of.gate_up(), of.down());
  const Workspace workspace(cpu, planned.workspace_bytes());
  planned.run({}, of.tensors(), workspace.data());
  expect_right(of, of.tensors());
  EXPECT_TRUE(std::isnan(of.out().value(5, 0)));
  EXPECT_TRUE(std::isnan(of.out().value(6, 0)));
}

TEST(MoeLayerApi, GivesTheSameBitsInEveryRun) {
  const Device cpu = Device::cpu();
  MoeProblem problem = layer();
  problem.tokens = 150;
  MoeCase of(problem, random_choices(problem, 8));
  const MoeLayer planned = plan(cpu, problem, of.gate_up(), of.down());
  const Workspace workspace(cpu, planned.workspace_bytes());
  planned.run({}, of.tensors(), workspace.data());
  const std::vector<std::uint8_t> first = of.out().bytes();
  for (int run = 0; run < 50; ++run) {
    of.out().poison();
    planned.run({}, of.tensors(), workspace.data());
    ASSERT_EQ(of.out().bytes(), first);
  }
}

void expect_refused(const char* sentence, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << sentence;
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), sentence);
  }
}

TEST(MoeLayerApi, RefusesProblemsThatItCannotPlan) {
  const Device cpu = Device::cpu();
  MoeCase of(layer(), random_choices(layer(), 9));
  const auto refused = [&](const char* sentence, const std::function<void(MoeProblem&)>& change) {
    MoeProblem problem = layer();
    change(problem);
    expect_refused(sentence, [&] { (void)plan(cpu, problem, of.gate_up(), of.down()); });
  };
  refused("problem.top_k is 0, expected 1 to 2147483647", [](MoeProblem& p) { p.top_k = 0; });
  refused("problem.hidden_size is 44, expected a multiple of 8 for bf16 operands",
          [](MoeProblem& p) { p.hidden_size = 44; });
  refused("problem.intermediate_size is 40, expected a multiple of 16 for nvfp4 operands", [](MoeProblem& p) {
    p.intermediate_size = 40;
    p.down = Format::nvfp4;
  });
  refused("problem.intermediate is fp32, expected fp16, bf16, nvfp4 or one of FP8",
          [](MoeProblem& p) { p.intermediate = Format::fp32; });
  refused("problem.intermediate_size is 32, expected a multiple of 128 for an intermediate in fp8_block",
          [](MoeProblem& p) { p.intermediate = Format::fp8_block; });
  refused("problem.intermediate_scale is 0, expected a finite number above 0", [](MoeProblem& p) {
    p.intermediate = Format::fp8_tensor;
    p.intermediate_scale = 0;
  });
  refused("problem.intermediate_scale is 2, expected 1 for bf16, which is given no scale",
          [](MoeProblem& p) { p.intermediate_scale = 2; });
  refused("problem.out is nvfp4, expected fp32, fp16 or bf16", [](MoeProblem& p) { p.out = Format::nvfp4; });
  refused("problem.quantized_x is fp8_tensor, expected fp8_row, fp8_block or none",
          [](MoeProblem& p) { p.quantized_x = Format::fp8_tensor; });
  refused("problem.x is fp8_row with problem.quantized_x, expected fp16 or bf16", [](MoeProblem& p) {
    p.x = Format::fp8_row;
    p.quantized_x = Format::fp8_row;
  });
  refused(
      "problem.tokens times problem.top_k is 1000000000 times 3, expected at most 2147483647: rows are counted in "
      "int32",
      [](MoeProblem& p) { p.tokens = 1'000'000'000; });
  refused(
      "problem.tokens times problem.top_k times problem.intermediate_size is 2000000000 times 2000000000, expected "
      "at most 72057594037927936 elements",
      [](MoeProblem& p) {
        p.tokens = 2'000'000'000;
        p.top_k = 1;
        p.intermediate_size = 2'000'000'000;
      });
  refused("gate_up: the weights have 5 experts, but the problem says 6", [](MoeProblem& p) { p.experts = 6; });
  refused("down: the weights have no bias, but problem.bias is true", [](MoeProblem& p) { p.down_bias = true; });
  expect_refused("down: the weights are gate and up, but the problem has no activation: expected one matrix an expert",
                 [&] {
                   MoeProblem square = layer();
                   square.intermediate_size = square.hidden_size;
                   MoeCase both(square, random_choices(square, 9));
                   (void)plan(cpu, square, both.gate_up(), both.gate_up());
                 });
  expect_refused("gate_up: strategy triton is not known: use one of by_expert", [&] {
    (void)plan(cpu, layer(), of.gate_up(), of.down(), {.gate_up = {.strategy = "triton"}, .down = {}});
  });
}

TEST(MoeLayerApi, RefusesTensorsThatItCannotRun) {
  const Device cpu = Device::cpu();
  MoeCase of(layer(), random_choices(layer(), 10));
  const MoeLayer planned = plan(cpu, layer(), of.gate_up(), of.down());
  const Workspace workspace(cpu, planned.workspace_bytes());
  const auto refused = [&](const char* sentence, const std::function<void(MoeTensors&)>& change) {
    MoeTensors tensors = of.tensors();
    change(tensors);
    expect_refused(sentence, [&] { planned.run({}, tensors, workspace.data()); });
  };
  refused("topk_ids is fp32, expected int32", [](MoeTensors& t) { t.topk_ids.format = Format::fp32; });
  refused("topk_ids is [19, 2], expected [19, 3]", [](MoeTensors& t) { t.topk_ids.shape[1] = 2; });
  refused("topk_weights is bf16, expected fp32", [](MoeTensors& t) { t.topk_weights.format = Format::bf16; });
  refused("topk_weights is not contiguous, expected elements one behind the other",
          [](MoeTensors& t) { t.topk_weights.strides[0] = 4; });
  refused("x has 20 rows, expected 0 to 19, the tokens that the plan was made for",
          [](MoeTensors& t) { t.x.shape[0] = 20; });
  refused("x is fp16, but the problem says bf16", [](MoeTensors& t) { t.x.format = Format::fp16; });
  refused("x has 1 dimensions, expected 2: [tokens, hidden_size]", [](MoeTensors& t) { t.x.rank = 1; });
  refused("out is [18, 48], expected [19, 48]", [](MoeTensors& t) { t.out.shape[0] = 18; });
  refused("out is in the memory of GPU 0, expected the CPU: copy it there first",
          [](MoeTensors& t) { t.out.device = {DeviceKind::cuda, 0}; });
  refused("out shares memory with x, expected an output apart from every operand",
          [](MoeTensors& t) { t.out.data = t.x.data; });
  refused("out shares memory with b1 of down, expected an output apart from every operand",
          [&](MoeTensors& t) { t.out.data = of.down().b1.data; });
  EXPECT_TRUE(std::isnan(of.out().value(0, 0)));
  EXPECT_THROW(planned.run({}, of.tensors(), nullptr), Error);
}

TEST(MoeLayerApi, EqualProblemsHaveEqualHashes) {
  std::unordered_set<MoeProblem> known{layer()};
  EXPECT_TRUE(known.contains(layer()));
  MoeProblem other = layer();
  other.rows = Format::fp32;
  EXPECT_FALSE(known.contains(other));
}

}  // namespace
}  // namespace thresher
