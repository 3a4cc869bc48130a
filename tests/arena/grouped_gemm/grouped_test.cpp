// The grouped products in the arena: routing, data, judge, suites, and what the gate `correct` finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "arena/contestants/registry.hpp"
#include "arena/emulation/emulation.hpp"
#include "arena/emulation/examine.hpp"
#include "arena/expect_error.hpp"
#include "arena/gates/correctness.hpp"
#include "arena/gemm/routing.hpp"
#include "arena/grouped_gemm/planted_grouped.hpp"
#include "arena/operation/inspector.hpp"
#include "arena/operations.hpp"
#include "arena/suites/suite.hpp"
#include "formats/elements.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

TEST(Routing, EveryTokenChoosesDifferentExperts) {
  for (const Routing routing : all_routings) {
    const auto counts = routed_counts({200, 8, 64, routing}, 64);
    EXPECT_EQ(sum(counts), 200 * 8) << name(routing);
    EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 200) << name(routing);
    EXPECT_EQ(counts, routed_counts({200, 8, 64, routing}, 64));
  }
}

TEST(Routing, IsAsItsNameSays) {
  const auto uniform = routed_counts({4096, 8, 64, Routing::uniform}, 64);
  EXPECT_GT(*std::min_element(uniform.begin(), uniform.end()), 400);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 630);
  const auto zipf = routed_counts({4096, 8, 64, Routing::zipf}, 64);
  EXPECT_GT(*std::max_element(zipf.begin(), zipf.end()), 5 * *std::min_element(zipf.begin(), zipf.end()));
  EXPECT_EQ(routed_counts({100, 3, 16, Routing::one_hot}, 16).front(), 100);
  EXPECT_EQ(routed_counts({100, 3, 6, Routing::few}, 6), (std::vector<std::int64_t>{100, 100, 100, 0, 0, 0}));
}

TEST(Routing, ExpertsOfOtherGpusTakeTheirShare) {
  const auto here = routed_counts({512, 8, 256, Routing::uniform}, 32);
  EXPECT_EQ(std::ssize(here), 32);
  EXPECT_NEAR(static_cast<double>(sum(here)), 512.0, 100.0);
  EXPECT_EQ(sum(routed_counts({1, 1, 1000000, Routing::uniform}, 2)), 1);
}

ProductTask ragged() {
  ProductTask task;
  task.problem = {.n = 72, .k = 80, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  task.problem.activation = Activation{};
  task.counts = {0, 9, 1, 0, 30};
  task.margin = 3;
  return completed(std::move(task));
}

std::vector<ProductTask> all_forms() {
  std::vector<ProductTask> tasks{ragged()};
  for (const Format format : {Format::fp16, Format::nvfp4}) {
    tasks.push_back(ragged());
    tasks.back().problem.a = tasks.back().problem.b = format;
    tasks.back().problem.out = Format::fp16;
  }
  for (const GateUpOrder order : all_gate_up_orders) {
    tasks.push_back(ragged());
    tasks.back().problem.b = Format::nvfp4;
    tasks.back().problem.bias = tasks.back().problem.row_weights = true;
    tasks.back().order = order;
  }
  for (const RowLayout layout : {RowLayout::slots, RowLayout::gathered}) {
    for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
      tasks.push_back(ragged());
      ProductTask& task = tasks.back();
      task.problem.layout = layout;
      task.problem.row_weights = true;
      task.problem.a = task.problem.b = Format::nvfp4;
      task.scale_layout = scales;
      task.margin = 0;
      task.problem.rows = 0;
      if (layout == RowLayout::gathered) {
        task.problem.tokens = 13;
        task.skipped = 4;
      }
      task = completed(std::move(task));
    }
  }
  tasks.push_back(ragged());
  tasks.back().problem.activation.reset();
  tasks.back().problem.bias = tasks.back().problem.row_weights = true;
  return tasks;
}

Finding judged(const ProductTask& task, const GroupedKernel& kernel,
               Distribution distribution = Distribution::full_range) {
  FakeRig rig;
  const Trial trial = make_trial(problem_of(task), distribution, {DeviceKind::cpu}, 11);
  return run_trial(trial, PlantedGroupedContestant([&] { return kernel; }), rig).finding;
}

const GroupedKernel honest = [](GroupedKernelCall& call) { call.compute(); };

TEST(GroupedArena, AnHonestKernelPassesEveryFormAndDistribution) {
  for (const ProductTask& task : all_forms()) {
    for (const Distribution distribution : all_distributions) {
      const Finding finding = judged(task, honest, distribution);
      EXPECT_TRUE(finding.correct) << label_of(task) << " " << name(distribution) << ": " << finding.sentence;
    }
  }
}

TEST(GroupedArena, TheCpusStrategyPassesEveryFormAndDistribution) {
  const auto contestant = library_registry(Device::cpu())->create({"grouped_dual_gemm", "by_expert"});
  FakeRig rig;
  for (const ProductTask& task : all_forms()) {
    for (const Distribution distribution : all_distributions) {
      const Trial trial = make_trial(problem_of(task), distribution, {DeviceKind::cpu}, 7);
      const Finding finding = run_trial(trial, *contestant, rig).finding;
      EXPECT_TRUE(finding.correct) << label_of(task) << " " << name(distribution) << ": " << finding.sentence;
    }
  }
}

std::vector<ProductTask> gemms() {
  std::vector<ProductTask> tasks;
  for (const Format format : {Format::bf16, Format::nvfp4, Format::fp8_block}) {
    for (const bool bias : {false, true}) {
      tasks.push_back(
          dense_task({.m = 33, .n = 72, .k = 144, .a = format, .b = format, .out = Format::bf16, .bias = bias}));
    }
  }
  return tasks;
}

TEST(GemmArena, TheCpusStrategyPassesEveryFormAndDistribution) {
  const auto contestant = library_registry(Device::cpu())->create({"gemm", "by_expert"});
  FakeRig rig;
  for (const ProductTask& task : gemms()) {
    for (const Distribution distribution : all_distributions) {
      const Trial trial = make_trial(problem_of(task), distribution, {DeviceKind::cpu}, 7);
      const Finding finding = run_trial(trial, *contestant, rig).finding;
      EXPECT_TRUE(finding.correct) << label_of(task) << " " << name(distribution) << ": " << finding.sentence;
    }
  }
}

/// A row too few, and one that is another's.
TEST(GemmArena, ARowThatIsNotComputedIsFound) {
  for (const ProductTask& task : gemms()) {
    EXPECT_TRUE(judged(task, honest).correct) << label_of(task);
    const Finding finding = judged(task, [](GroupedKernelCall& call) {
      call.compute();
      const std::size_t row_bytes = 72 * 2;
      auto* const c = static_cast<std::byte*>(call.call.tensors.c.data);
      std::memcpy(c + 32 * row_bytes, c, row_bytes);
    });
    EXPECT_FALSE(finding.correct) << label_of(task);
  }
}

TEST(GemmArena, ItsInputsHaveNoOffsets) {
  const ProductTask task = gemms().back();
  const Problem problem = problem_of(task);
  EXPECT_EQ(problem.operation().name(), "gemm");
  EXPECT_EQ(label(problem), "33x72x144 fp8_block*fp8_block->bf16 bias(bf16)");
  EXPECT_EQ(gemm_of(task).m, 33);
  std::vector<std::string> names;
  for (const HostTensor& input : problem.operation().inputs(problem, Distribution::normal, 1)) {
    names.push_back(input.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b1", "bias1"}));
  EXPECT_TRUE(problem.operation().uses_every_element(problem));
  EXPECT_FALSE(problem.operation().rearranged(problem, Distribution::normal, 1, 1).has_value());
  const std::optional<Problem> near = problem.operation().neighbour(problem);
  ASSERT_TRUE(near);
  EXPECT_EQ(near->as<ProductTask>().problem.experts, 1);
  EXPECT_EQ(&near->operation(), &problem.operation());
}

TEST(GemmArena, EdgesOfTheSuiteAreOfEveryFormat) {
  const Suite suite = load_suite("gemm_edges");
  std::set<Format> formats;
  for (const Problem& problem : suite.problems) {
    EXPECT_EQ(problem.operation().name(), "gemm");
    formats.insert(problem.as<ProductTask>().problem.b);
  }
  EXPECT_EQ(formats.size(), 6U);
}

TEST(GroupedArena, SeedsGiveExpertsOtherCounts) {
  std::set<std::vector<std::uint8_t>> offsets;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto inputs = product_inputs(ragged(), Distribution::normal, seed);
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [](const HostTensor& input) { return input.name == "offsets"; });
    ASSERT_NE(found, inputs.end());
    EXPECT_TRUE(found->is_index);
    std::vector<std::int32_t> values(6);
    std::memcpy(values.data(), found->values.data(), found->values.size());
    EXPECT_EQ(values.front(), 3);
    EXPECT_EQ(values.back(), 43);
    offsets.insert(found->values);
  }
  EXPECT_GT(offsets.size(), 3U);
}

TEST(GroupedArena, RowsOfNobodyAreNaN) {
  const auto inputs = product_inputs(ragged(), Distribution::full_range, 3);
  const Tensor a = inputs.front().view();
  for (const std::int64_t row : {0, 2, 43, 45}) {
    EXPECT_TRUE(std::isnan(formats::element(a, row, 5))) << row;
  }
  EXPECT_FALSE(std::isnan(formats::element(a, 10, 5)));
}

TEST(GroupedArena, OtherCountsKeepTheRowsAndFitTheSlots) {
  ProductTask slots = ragged();
  slots.problem.layout = RowLayout::slots;
  slots.problem.rows = 0;
  slots = completed(std::move(slots));
  for (const ProductTask& task : {ragged(), slots}) {
    std::set<std::vector<std::int64_t>> seen;
    for (std::uint64_t change = 0; change < 5; ++change) {
      const auto counts = other_counts(task, change, 5);
      EXPECT_EQ(sum(counts), task.owned_rows()) << change;
      EXPECT_LE(*std::max_element(counts.begin(), counts.end()), task.problem.rows) << change;
      seen.insert(counts);
    }
    EXPECT_GE(seen.size(), 4U);
  }
}

struct Mistake {
  const char* fault;
  ProductTask task;
  GroupedKernel kernel;
};

/// Whoever takes every group for as long as the others.
void assume_equal_counts(GroupedKernelCall& call) {
  const std::int64_t each = call.task.owned_rows() / call.task.problem.experts;
  std::int64_t next = call.call.owned.groups.front().first;
  for (reference::GroupRows& group : call.call.owned.groups) {
    group = {next, each};
    next += each;
  }
  call.compute();
}

TEST(GroupedArena, MistakesOfGroupedKernelsAreFound) {
  ProductTask weighted = ragged();
  weighted.problem.row_weights = true;
  const std::vector<Mistake> mistakes{
      {"writes padding rows", ragged(),
       [](GroupedKernelCall& call) {  // the last partial tile stored whole
         call.compute();
         for (std::int64_t column = 0; column < call.task.problem.n; ++column) {
           call.write(call.call.owned.groups.back().end(), column, 0);
         }
       }},
      {"unwritten outputs", ragged(),
       [](GroupedKernelCall& call) {  // leaves groups of a single row out
         for (reference::GroupRows& group : call.call.owned.groups) {
           group.count = group.count == 1 ? 0 : group.count;
         }
         call.compute();
       }},
      {"unwritten outputs", ragged(),
       [](GroupedKernelCall& call) {  // the last row of every group, as by an end that is one off
         for (reference::GroupRows& group : call.call.owned.groups) {
           group.count = std::max<std::int64_t>(group.count - 1, 0);
         }
         call.compute();
       }},
      {"wrong values", ragged(),
       [](GroupedKernelCall& call) {  // the weights of the expert before
         Tensor& gate = call.call.weights.gate;
         gate.data = static_cast<std::byte*>(gate.data) - 0;
         std::rotate(call.call.owned.groups.begin(), call.call.owned.groups.begin() + 1, call.call.owned.groups.end());
         call.compute();
       }},
      {"row weights left out", weighted,
       [](GroupedKernelCall& call) {
         call.call.problem.row_weights = false;
         call.compute();
       }},
      {"gate and up swapped", ragged(),
       [](GroupedKernelCall& call) {
         std::swap(call.call.weights.gate, call.call.weights.up);
         call.compute();
       }},
  };
  for (const Mistake& mistake : mistakes) {
    const Finding finding = judged(mistake.task, mistake.kernel);
    EXPECT_FALSE(finding.correct) << mistake.fault;
    EXPECT_EQ(finding.fault, mistake.fault) << finding.sentence;
  }
  EXPECT_FALSE(judged(ragged(), assume_equal_counts).correct);
}

/// Offsets that were read once: the trial's other inputs, which come first, have other ones.
TEST(GroupedArena, OffsetsOfTheFirstCallAreFoundOut) {
  FakeRig rig;
  const Trial trial = make_trial(problem_of(ragged()), Distribution::full_range, {DeviceKind::cpu}, 11);
  const auto remembers = [] {
    auto first = std::make_shared<std::vector<reference::GroupRows>>();
    return GroupedKernel([first](GroupedKernelCall& call) {
      *first = first->empty() ? call.call.owned.groups : *first;
      call.call.owned.groups = *first;
      call.compute();
    });
  };
  EXPECT_FALSE(run_trial(trial, PlantedGroupedContestant(remembers), rig).finding.correct);
}

TEST(GroupedArena, TheInspectorSeesWrongElementsAndRowsOfNobody) {
  const ProductTask task = ragged();
  const auto inputs = product_inputs(task, Distribution::full_range, 5);
  std::vector<HostTensor> outputs = product_outputs(task);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), first_poison);
  FakeRig rig;
  std::vector<DeviceSet> sets;
  sets.emplace_back(rig.memory(), inputs, outputs);
  sets[0].poison_outputs(first_poison);
  PlantedGroupedContestant(([] { return honest; })).prepare(problem_of(task), rig.memory(), sets)->run({}, 0);
  outputs[0].values = sets[0].download("c");
  const Problem problem = problem_of(task);
  const auto inspector = problem.operation().inspector(problem, Distribution::full_range, inputs, {}, 3);
  InputsOfCall pointers;
  for (const HostTensor& input : inputs) {
    pointers.push_back(&input);
  }
  const auto look_at = [&](std::int64_t row, std::int64_t column) {
    Look look{{{0, row, column, 8}}, {0, 3}};
    const auto first = static_cast<std::ptrdiff_t>((row * task.problem.n + column) * 2);
    look.parts[0].bytes.assign(outputs[0].values.begin() + first, outputs[0].values.begin() + first + 16);
    return inspector->fault_in(look, pointers, first_poison);
  };
  for (const std::int64_t row : {0, 3, 10, 42, 45}) {
    EXPECT_EQ(look_at(row, 8), "") << row;
  }
  EXPECT_EQ(inspector->fault_against(outputs, outputs), "");
  std::vector<HostTensor> spoiled = outputs;
  spoiled[0].values[static_cast<std::size_t>(10 * task.problem.n * 2 + 1)] ^= 0x40;
  EXPECT_NE(inspector->fault_against(spoiled, outputs), "");
  outputs[0].values[static_cast<std::size_t>((10 * task.problem.n + 8) * 2 + 1)] ^= 0x40;
  EXPECT_NE(look_at(10, 8), "");
  outputs[0].values[static_cast<std::size_t>(45 * task.problem.n * 2)] = 0;
  EXPECT_EQ(look_at(45, 0), "row 45 of c belongs to nobody and was written");
}

TEST(GroupedArena, CostsAreThoseOfTheRowsThatAreOwnedAndTheExpertsThatHaveAny) {
  const ProductTask task = ragged();
  const Cost cost = problem_of(task).operation().cost(problem_of(task));
  EXPECT_DOUBLE_EQ(cost.operations, 4.0 * 40 * 72 * 80);
  EXPECT_DOUBLE_EQ(cost.compulsory_bytes, 2.0 * (40 * 80 + 2 * 3 * 72 * 80 + 40 * 72));
}

TEST(GroupedArena, SmallerProblemsEndAndStayProblems) {
  for (const ProductTask& task : all_forms()) {
    Problem problem = problem_of(task);
    problem.as<ProductTask>().problem.n = 2048;
    for (int i = 0; i < 40; ++i) {
      const auto half = problem.operation().smaller(problem);
      if (!half) {
        break;
      }
      ASSERT_LT(half->operation().cost(*half).operations, problem.operation().cost(problem).operations);
      problem = *half;
    }
    EXPECT_FALSE(problem.operation().smaller(problem)) << label(problem);
    EXPECT_TRUE(problem.operation().neighbour(problem_of(task)));
  }
}

TEST(GroupedArena, EmulatedKernelsSayWhatTheyAre) {
  for (const Operation* const operation : operations()) {
    if (const EmulatedOperation* const kernels = operation->emulated()) {
      for (const std::string& strategy : kernels->strategies()) {
        for (const auto& kernel : kernels->samples(strategy, nullptr)) {
          const std::string title = kernel->title();
          EXPECT_TRUE(std::all_of(title.begin(), title.end(), [](char c) { return c >= ' ' && c <= '~'; })) << strategy;
        }
      }
    }
  }
}

Suite suite_with(const std::string& keys) {
  return parse_suite(
      "title = \"t\"\noperation = \"grouped_gemm\"\ndistributions = [\"normal\"]\n[[problem]]\n"
      "a = \"bf16\"\nb = \"bf16\"\nout = \"bf16\"\nn = 8\nk = 8\n" +
          keys,
      "t", "t.toml");
}

std::string error_in_problem(const std::string& keys) {
  return error_of([&] { (void)suite_with(keys); });
}

TEST(GroupedSuites, KeysThatNoProblemWouldHeedAreRefused) {
  EXPECT_EQ(suite_with("counts = [3]\nlayout = [\"packed\", \"slots\"]\ncapacity = 3\n").problems.size(), 2U);
  EXPECT_EQ(error_in_problem("counts = [3]\nlayout = \"slots\"\ncapacity = 2\n"),
            "t.toml:12: `capacity` in [problem] is 2, but an expert has 3 rows");
  EXPECT_EQ(error_in_problem("counts = [3]\ncapacity = 9\n"),
            "t.toml:11: `capacity` in [problem] is of layout = \"slots\"");
  EXPECT_EQ(error_in_problem("counts = [3]\nskipped = 2\n"),
            "t.toml:11: `skipped` in [problem] is of layout = \"gathered\"");
  EXPECT_EQ(error_in_problem("counts = [3]\ntokens = 2\n"),
            "t.toml:11: `tokens` in [problem] is of layout = \"gathered\"");
  EXPECT_EQ(error_in_problem("experts = 2\ntokens = 2\nlayout = \"gathered\"\nrow_ids_divisor = 2\n"),
            "t.toml:13: `row_ids_divisor` in [problem] is top_k where tokens are routed: leave it out");
}

TEST(GroupedSuites, AreReadAndNameTheirProblems) {
  for (const char* suite : {"grouped_origin", "grouped_origin_bf16", "grouped_origin_fp8", "grouped_edges",
                            "grouped_fp8_edges", "grouped_requantised", "grouped_gemm_edges", "moe_decode",
                            "moe_decode_bf16", "moe_prefill", "moe_prefill_bf16"}) {
    const Suite read = load_suite(suite);
    EXPECT_FALSE(read.problems.empty()) << suite;
    std::set<std::string> labels;
    for (const Problem& problem : read.problems) {
      EXPECT_TRUE(labels.insert(label(problem)).second) << label(problem);
    }
  }
  EXPECT_EQ(label(load_suite("grouped_origin").problems.front()),
            "8x4096x7168 nvfp4*nvfp4->fp16 rows(80,176,128,72,64,248,96,160)");
}

/// What the gate `race-free` examines, and `thresher emulate` prints.
TEST(GroupedEmulation, KernelsOfEveryStrategySayWhatTheyAreAndAreCleanOnTheirEdges) {
  const std::vector<std::uint64_t> seeds{0, 1};
  for (const Operation* const operation :
       {&grouped_dual_gemm_operation(), &grouped_gemm_operation(), &gemm_operation()}) {
    const EmulatedOperation& emulated = *operation->emulated();
    for (const std::string& strategy : emulated.strategies()) {
      for (const auto& kernel : emulated.samples(strategy, nullptr)) {
        EXPECT_NE(kernel->title().find("gemm " + strategy), std::string::npos) << kernel->title();
        for (const Problem& problem : kernel->edges()) {
          const Examination examined = examine(*kernel, problem, seeds);
          EXPECT_TRUE(examined.clean()) << kernel->title() << " on " << label(problem) << ": " << examined.finding;
        }
      }
    }
  }
}

}  // namespace
}  // namespace thresher::arena
