// Outputs in FP8 in the arena: their scales are judged and inspected as values are.
#include <gtest/gtest.h>

#include <cstring>

#include "arena/contestants/registry.hpp"
#include "arena/gates/correctness.hpp"
#include "arena/grouped_gemm/planted_grouped.hpp"
#include "arena/operation/inspector.hpp"

namespace thresher::arena {
namespace {

ProductTask quantized_task(Format out, RowLayout layout = RowLayout::packed) {
  ProductTask task;
  task.problem = {.n = 256, .k = 80, .layout = layout, .a = Format::bf16, .b = Format::bf16, .out = out};
  task.problem.activation = Activation{};
  task.counts = {0, 9, 1, 0, 30};
  task.margin = layout == RowLayout::slots ? 0 : 3;
  if (layout == RowLayout::gathered) {
    task.problem.tokens = 13;
    task.skipped = 4;
  }
  return completed(std::move(task));
}

std::vector<ProductTask> quantized_tasks() {
  return {quantized_task(Format::fp8_block),
          quantized_task(Format::fp8_block, RowLayout::slots),
          quantized_task(Format::fp8_block, RowLayout::gathered),
          quantized_task(Format::fp8_row),
          quantized_task(Format::fp8_tensor),
          quantized_task(Format::fp8_tensor, RowLayout::slots)};
}

Finding judged_quantized(const ProductTask& task, const GroupedKernel& kernel,
                         Distribution distribution = Distribution::normal) {
  FakeRig rig;
  const Trial trial = make_trial(problem_of(task), distribution, {DeviceKind::cpu}, 11);
  return run_trial(trial, PlantedGroupedContestant([&] { return kernel; }), rig).finding;
}

TEST(GroupedQuantized, HonestKernelsPass) {
  const auto library = library_registry(Device::cpu())->create({"grouped_dual_gemm", "by_expert"});
  for (const ProductTask& task : quantized_tasks()) {
    for (const Distribution distribution : {Distribution::integers, Distribution::specials}) {
      const Finding planted = judged_quantized(task, [](GroupedKernelCall& call) { call.compute(); }, distribution);
      EXPECT_TRUE(planted.correct) << label_of(task) << " " << name(distribution) << ": " << planted.sentence;
      FakeRig rig;
      const Trial trial = make_trial(problem_of(task), distribution, {DeviceKind::cpu}, 7);
      const Finding ours = run_trial(trial, *library, rig).finding;
      EXPECT_TRUE(ours.correct) << label_of(task) << " " << name(distribution) << ": " << ours.sentence;
    }
  }
}

float* scales_of(const GroupedKernelCall& call) {
  return static_cast<float*>(const_cast<void*>(call.call.tensors.c.scales.data));
}

/// Codes of a block under half of its scale: the largest are cut off.
void halve_scales(GroupedKernelCall& call) {
  call.compute();
  auto* const codes = static_cast<std::uint8_t*>(call.call.tensors.c.data);
  for (const reference::GroupRows& group : call.call.owned.groups) {
    for (std::int64_t row = group.first; row < group.end(); ++row) {
      scales_of(call)[2 * row] /= 2;
      for (std::int64_t column = 0; column < 128; ++column) {
        std::uint8_t& code = codes[row * 256 + column];
        code = (code & 0x7F) < 0x76 ? static_cast<std::uint8_t>(code + 8) : static_cast<std::uint8_t>(code | 0x7E);
      }
    }
  }
}

TEST(GroupedQuantized, WrongScalesAreFound) {
  struct WrongScale {
    const char* fault;
    GroupedKernel kernel;
  };
  const std::vector<WrongScale> all{
      {"wrong values", halve_scales},
      {"wrong values",
       [](GroupedKernelCall& call) {  // each block has the other one's
         call.compute();
         for (const reference::GroupRows& group : call.call.owned.groups) {
           for (std::int64_t row = group.first; row < group.end(); ++row) {
             std::swap(scales_of(call)[2 * row], scales_of(call)[2 * row + 1]);
           }
         }
       }},
      {"stale tile",
       [](GroupedKernelCall& call) {  // so large that any value may round to 0
         call.compute();
         for (const reference::GroupRows& group : call.call.owned.groups) {
           for (std::int64_t row = group.first; row < group.end(); ++row) {
             scales_of(call)[2 * row] = scales_of(call)[2 * row + 1] = 1e30F;
             std::memset(static_cast<std::byte*>(call.call.tensors.c.data) + row * 256, 0, 256);
           }
         }
       }},
      {"unwritten outputs",
       [](GroupedKernelCall& call) {  // scales stay as they were
         std::vector<float> before(scales_of(call), scales_of(call) + 2 * call.task.problem.rows);
         call.compute();
         std::copy(before.begin(), before.end(), scales_of(call));
       }},
      {"writes padding rows", [](GroupedKernelCall& call) {
         call.compute();
         scales_of(call)[2 * call.call.owned.groups.back().end()] = 1;
       }}};
  for (const WrongScale& wrong : all) {
    const Finding finding = judged_quantized(quantized_task(Format::fp8_block), wrong.kernel);
    EXPECT_FALSE(finding.correct);
    EXPECT_EQ(finding.fault, wrong.fault) << finding.sentence;
  }
}

TEST(GroupedQuantized, TheInspectorSeesWrongScalesAndCodes) {
  const ProductTask task = quantized_task(Format::fp8_block);
  const Problem problem = problem_of(task);
  const auto inputs = product_inputs(task, Distribution::normal, 5);
  InputsOfCall pointers;
  for (const HostTensor& input : inputs) {
    pointers.push_back(&input);
  }
  const auto inspector = problem.operation().inspector(problem, Distribution::normal, inputs, {}, 3);
  const auto made_by = [&](const GroupedKernel& kernel) {
    std::vector<HostTensor> outputs = product_outputs(task);
    FakeRig rig;
    std::vector<DeviceSet> sets;
    sets.emplace_back(rig.memory(), inputs, outputs);
    sets[0].poison_outputs(first_poison);
    PlantedGroupedContestant([&] { return kernel; }).prepare(problem, rig.memory(), sets)->run({}, 0);
    for (HostTensor& output : outputs) {
      output.values = sets[0].download(output.name);
    }
    return outputs;
  };
  const auto look_at = [&](const std::vector<HostTensor>& outputs) {
    Random random(1);
    std::string found;
    for (int i = 0; i < 60 && found.empty(); ++i) {
      Look look = inspector->choose(random);
      for (RowPart& part : look.parts) {
        const HostTensor& output = outputs[part.output];
        const auto bytes = static_cast<std::ptrdiff_t>(output.values.size()) / output.elements();
        const auto begin = output.values.begin() + (part.row * output.shape.back() + part.first_column) * bytes;
        part.bytes.assign(begin, begin + part.columns * bytes);
      }
      found = inspector->fault_in(look, pointers, first_poison);
    }
    return found;
  };
  const auto right = made_by([](GroupedKernelCall& call) { call.compute(); });
  EXPECT_EQ(look_at(right), "");
  EXPECT_EQ(inspector->fault_against(right, right), "");
  const auto wrong = made_by(halve_scales);
  EXPECT_NE(look_at(wrong).find("the scale of c["), std::string::npos) << look_at(wrong);
  EXPECT_NE(inspector->fault_against(wrong, right).find("the scale of c["), std::string::npos);
  auto spoiled = right;
  for (std::int64_t column = 0; column < 256; ++column) {
    spoiled[0].values[static_cast<std::size_t>(12 * 256 + column)] ^= 0x80;
  }
  EXPECT_NE(inspector->fault_against(spoiled, right), "");
}

}  // namespace
}  // namespace thresher::arena
