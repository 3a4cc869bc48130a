#include "reference/moe_layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/grouped_weights.hpp"
#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "reference/output_format.hpp"
#include "support/moe_case.hpp"

namespace thresher::reference {
namespace {

TEST(MoeDefinition, SortsChoicesAsTheyCome) {
  const MoeProblem problem{.experts = 4, .tokens = 5, .top_k = 2, .hidden_size = 8, .intermediate_size = 8};
  std::array<std::int32_t, 10> ids{2, 0, 4, 2, -1, 0, 3, 3, 0, 2};
  const SortedChoices sorted =
      sorted_choices(problem, Tensor::contiguous(ids.data(), Format::int32, {problem.tokens, problem.top_k}));
  EXPECT_EQ(sorted.offsets, (std::vector<std::int32_t>{0, 3, 3, 6, 8}));
  EXPECT_EQ(sorted.row_ids, (std::vector<std::int32_t>{1, 5, 8, 0, 3, 9, 6, 7, -1, -1}));
  EXPECT_EQ(sorted.inverse, (std::vector<std::int32_t>{3, 0, -1, 4, -1, 1, 6, 7, 2, 5}));
}

double dot(const Tensor& one, std::int64_t row, const Tensor& other, std::int64_t other_row) {
  double sum = 0;
  for (std::int64_t k = 0; k < one.shape[1]; ++k) {
    sum += formats::element(one, row, k) * formats::element(other, other_row, k);
  }
  return sum * formats::global_scale(one) * formats::global_scale(other);
}

/// Every output of a call.
MoeOutputs all_of(const MoeCall& call) {
  return moe_layer(call, whole(call.tensors.out.shape[0], call.problem.hidden_size), DeviceKind::cpu);
}

MoeProblem with_biases() {
  return {.experts = 3,
          .tokens = 7,
          .top_k = 2,
          .hidden_size = 32,
          .intermediate_size = 16,
          .x = Format::nvfp4,
          .gate_up = Format::nvfp4,
          .down = Format::fp8_tensor,
          .rows = Format::fp32,
          .out = Format::fp32,
          .activation = {.kind = ActivationKind::gelu_tanh},
          .gate_up_bias = true,
          .down_bias = true};
}

/// Element by element, one token after another, as the header has it.
TEST(MoeDefinition, IsWhatTheHeaderSaysTokenByToken) {
  const MoeProblem problem = with_biases();
  test::MoeCase of(problem, test::random_choices(problem, 1));
  const GroupedWeights gate_up = of.gate_up();
  const GroupedWeights down = of.down();
  const MoeTensors tensors = of.tensors();
  const MoeOutputs outputs = all_of({problem, gate_up, down, tensors});
  ASSERT_EQ(outputs.value.size(), static_cast<std::size_t>(problem.tokens * problem.hidden_size));
  for (std::int64_t token = 0; token < problem.tokens; ++token) {
    std::vector<double> wanted(static_cast<std::size_t>(problem.hidden_size));
    for (std::int64_t c = 0; c < problem.top_k; ++c) {
      const auto choice = static_cast<std::size_t>(token * problem.top_k + c);
      const std::int32_t expert = of.ids()[choice];
      if (expert < 0 || expert >= problem.experts) {
        continue;
      }
      const Tensor gate = slot_matrix(gate_up.b1, expert);
      const Tensor up = slot_matrix(gate_up.b2, expert);
      const Tensor matrix = slot_matrix(down.b1, expert);
      std::vector<double> hidden;
      for (std::int64_t i = 0; i < problem.intermediate_size; ++i) {
        hidden.push_back(unrounded(dot(tensors.x, token, gate, i) + formats::element(gate_up.bias1, expert, i),
                                   dot(tensors.x, token, up, i) + formats::element(gate_up.bias2, expert, i),
                                   std::optional<Activation>(problem.activation), 1.0));
      }
      for (std::int64_t column = 0; column < problem.hidden_size; ++column) {
        double sum = formats::element(down.bias1, expert, column);
        for (std::int64_t i = 0; i < problem.intermediate_size; ++i) {
          sum +=
              hidden[static_cast<std::size_t>(i)] * formats::element(matrix, column, i) * formats::global_scale(matrix);
        }
        wanted[static_cast<std::size_t>(column)] += static_cast<double>(of.weights()[choice]) * sum;
      }
    }
    for (std::size_t column = 0; column < wanted.size(); ++column) {
      const double value = outputs.value[static_cast<std::size_t>(token * problem.hidden_size) + column];
      EXPECT_NEAR(value, wanted[column], 1e-11 * (1 + std::fabs(wanted[column]))) << token << " " << column;
    }
  }
}

/// Some tokens and columns are those of the whole, within a bound that is gauged on them alone; without weights they
/// are sums of rows.
TEST(MoeDefinition, OfSomeOutputsIsTheSameAsOfAll) {
  for (const Format intermediate : {Format::bf16, Format::fp8_row}) {
    MoeProblem problem = with_biases();
    problem.x = problem.gate_up = problem.down = Format::fp8_row;
    problem.intermediate = intermediate;
    test::MoeCase of(problem, test::random_choices(problem, 4));
    const MoeCall call{problem, of.gate_up(), of.down(), of.tensors()};
    const MoeOutputs all = all_of(call);
    const Region some{{0, 3, 6}, {1, 30}};
    const MoeOutputs found = moe_layer(call, some, DeviceKind::cpu, 1);
    ASSERT_EQ(found.value.size(), 6U);
    for (std::size_t i = 0; i < found.value.size(); ++i) {
      const auto at = static_cast<std::size_t>(some.rows[i / 2] * problem.hidden_size + some.columns[i % 2]);
      EXPECT_EQ(found.value[i], all.value[at]) << i;
      EXPECT_EQ(found.unweighted[i], all.unweighted[at]) << i;
      EXPECT_LE(found.bound[i], all.bound[at]) << i;
    }
    std::fill(of.weights().begin(), of.weights().end(), 1.0F);
    EXPECT_EQ(all_of(call).value, all.unweighted);
  }
}

/// Outputs within the bound pass; one beyond it does not, nor do those of a choice less, of another expert, or of a
/// weight that is 5 % off.
TEST(MoeDefinition, TheToleranceTellsRoundingsFromMistakes) {
  MoeProblem problem = with_biases();
  problem.intermediate_size = 64;
  problem.rows = Format::bf16;
  problem.out = Format::bf16;
  test::MoeCase of(problem, test::random_choices(problem, 2));
  const MoeCall call{problem, of.gate_up(), of.down(), of.tensors()};
  const MoeOutputs outputs = all_of(call);
  // A fraction of the bound off, and one output further.
  const auto judged = [&](double fraction, std::size_t further) {
    for (std::size_t i = 0; i < outputs.value.size(); ++i) {
      const double sign = i % 2 == 0 ? 1.0 : -1.0;
      const double off = sign * outputs.bound[i] * (i == further ? 1.5 : fraction);
      of.out().set_value(static_cast<std::int64_t>(i) / problem.hidden_size,
                         static_cast<std::int64_t>(i) % problem.hidden_size,
                         static_cast<float>(outputs.value[i] + off));
    }
    return judge_moe_layer(call, DeviceKind::cpu);
  };
  EXPECT_TRUE(judged(0.0, outputs.value.size()).passed);
  EXPECT_TRUE(judged(0.6, outputs.value.size()).passed);
  const Verdict one = judged(0.0, 40);
  EXPECT_EQ(one.wrong, 1);
  EXPECT_EQ(one.worst.row, 40 / problem.hidden_size);
  EXPECT_EQ(one.worst.column, 40 % problem.hidden_size);
  EXPECT_EQ(one.worst_tile.wrong, 1);

  std::size_t chosen = 0;
  while (of.ids()[chosen] < 0 || of.ids()[chosen] >= problem.experts) {
    ++chosen;
  }
  (void)judged(0.0, outputs.value.size());
  const std::int32_t expert = of.ids()[chosen];
  for (const std::int32_t other : {-1, (expert + 1) % 3}) {
    of.ids()[chosen] = other;
    EXPECT_GT(judge_moe_layer(call, DeviceKind::cpu).wrong, problem.hidden_size / 2) << other;
  }
  of.ids()[chosen] = expert;
  of.weights()[chosen] *= 1.05F;
  EXPECT_GT(judge_moe_layer(call, DeviceKind::cpu).wrong, 0);
}

/// Outputs are held against those of the intermediate as it is quantized: what a layer makes of one in another format
/// is wrong.
TEST(MoeDefinition, AQuantizedIntermediateIsOneOfItsOwn) {
  for (const Format format : {Format::fp8_block, Format::fp8_tensor, Format::fp8_row, Format::nvfp4}) {
    MoeProblem problem = with_biases();
    problem.x = problem.gate_up = problem.down = Format::fp8_row;
    problem.intermediate_size = 256;
    problem.intermediate = format;
    problem.intermediate_scale = format == Format::fp8_tensor ? 0.05F : format == Format::nvfp4 ? 0.01F : 1.0F;
    test::MoeCase of(problem, test::random_choices(problem, 3));
    const MoeCall call{problem, of.gate_up(), of.down(), of.tensors()};
    const auto judged_as = [&](const MoeProblem& made) {
      const MoeOutputs outputs = all_of({made, of.gate_up(), of.down(), of.tensors()});
      auto* const out = static_cast<float*>(of.tensors().out.data);
      std::transform(outputs.value.begin(), outputs.value.end(), out,
                     [](double value) { return static_cast<float>(value); });
      return judge_moe_layer(call, DeviceKind::cpu);
    };
    EXPECT_TRUE(judged_as(problem).passed) << name(format);
    for (const Format other : {Format::bf16, Format::fp8_block, Format::fp8_tensor, Format::fp8_row, Format::nvfp4}) {
      MoeProblem another = problem;
      another.intermediate = other;
      if (other != format) {
        EXPECT_GT(judged_as(another).wrong, problem.tokens * problem.hidden_size / 3)
            << name(other) << " for " << name(format);
      }
    }
  }
}

}  // namespace
}  // namespace thresher::reference
