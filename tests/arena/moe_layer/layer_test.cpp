// Layers of experts and gated MLPs in the arena: their problems, data, judge and contestants.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "arena/contestants/registry.hpp"
#include "arena/emulation/examine.hpp"
#include "arena/expect_error.hpp"
#include "arena/gates/correctness.hpp"
#include "arena/honesty/honesty.hpp"
#include "arena/moe_layer/calls.hpp"
#include "arena/moe_layer/judge.hpp"
#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/planted_layer.hpp"
#include "arena/suites/suite.hpp"
#include "ops/forecast.hpp"
#include "reference/moe_layer.hpp"

namespace thresher::arena {
namespace {

LayerTask experts(Format intermediate = Format::bf16) {
  LayerTask task;
  task.problem = {.experts = 5,
                  .tokens = 19,
                  .top_k = 3,
                  .hidden_size = 48,
                  .intermediate_size = 128,
                  .intermediate = intermediate};
  task.total_experts = 5;
  task.skipped = 6;
  task.repeated = 4;
  return task;
}

LayerTask quantised() {
  LayerTask task = experts(Format::fp8_block);
  task.problem.x = task.problem.gate_up = task.problem.down = Format::fp8_block;
  task.problem.hidden_size = 144;
  task.problem.intermediate_size = 256;
  task.problem.rows = Format::fp32;
  return task;
}

std::vector<LayerTask> all_forms() {
  std::vector<LayerTask> all{experts(), quantised(), experts(), experts(Format::nvfp4)};
  all[2].order = GateUpOrder::interleaved;
  all[2].problem.gate_up = Format::nvfp4;
  all[2].problem.gate_up_bias = all[2].problem.down_bias = true;
  all[2].problem.activation.kind = ActivationKind::swiglu_clamped;
  all[2].total_experts = 12;
  all[2].routing = Routing::zipf;
  all[3].problem.intermediate_scale = 0.0625F;
  all[3].problem.down = Format::nvfp4;
  all[3].scale_layout = ScaleLayout::blocked;
  all[3].problem.x = all[3].problem.gate_up = Format::nvfp4;
  all.push_back(gated_mlp_task({.tokens = 17, .hidden_size = 48, .intermediate_size = 64}));
  all.push_back(gated_mlp_task({.tokens = 17,
                                .hidden_size = 48,
                                .intermediate_size = 128,
                                .x = Format::fp8_block,
                                .gate_up = Format::fp8_block,
                                .intermediate = Format::fp8_block,
                                .down = Format::fp8_block,
                                .out = Format::fp32}));
  return all;
}

Finding judged(const LayerTask& task, const LayerKernel& kernel) {
  FakeRig rig;
  const Trial trial = make_trial(problem_of(task), Distribution::full_range, {DeviceKind::cpu}, 11);
  return run_trial(trial, PlantedLayerContestant([&] { return kernel; }), rig).finding;
}

TEST(LayerArena, WhatPlanChoosesPassesEveryFormAndDistribution) {
  FakeRig rig;
  for (const LayerTask& task : all_forms()) {
    const Problem problem = problem_of(task);
    const auto contestant =
        library_registry(Device::cpu())->create({std::string(problem.operation().name()), planned_layer});
    EXPECT_EQ(contestant->unsupported_reason(problem), "") << label(problem);
    for (const Distribution distribution : {Distribution::full_range, Distribution::normal, Distribution::specials}) {
      const Finding finding =
          run_trial(make_trial(problem, distribution, {DeviceKind::cpu}, 7), *contestant, rig).finding;
      EXPECT_TRUE(finding.correct) << label(problem) << " " << name(distribution) << ": " << finding.sentence;
    }
  }
}

TEST(LayerArena, AnHonestKernelPasses) {
  for (const LayerTask& task : {experts(), quantised()}) {
    const Finding finding = judged(task, [](LayerKernelCall& call) { call.compute(); });
    EXPECT_TRUE(finding.correct) << label_of(task) << ": " << finding.sentence;
  }
}

TEST(LayerArena, RoutersWeightsThatAreLeftOutAreNamed) {
  const Finding finding = judged(experts(), [](LayerKernelCall& call) {
    std::fill(call.weights.begin(), call.weights.end(), 1.0F);
    call.compute();
  });
  EXPECT_FALSE(finding.correct);
  EXPECT_EQ(finding.fault, "the router's weights left out");
}

/// Each mistake of a whole layer that its products alone would not show.
TEST(LayerArena, MistakesOfTheChainAreFound) {
  const std::vector<std::pair<const char*, LayerKernel>> mistakes{
      {"weights of the choice before",
       [](LayerKernelCall& call) {
         std::rotate(call.weights.begin(), call.weights.begin() + 1, call.weights.end());
         call.compute();
       }},
      {"a choice of nobody goes to the last expert",
       [](LayerKernelCall& call) {
         const auto last = static_cast<std::int32_t>(call.task.problem.experts) - 1;
         for (std::int32_t& id : call.ids) {
           id = id < 0 || id > last ? last : id;
         }
         call.compute();
       }},
      {"an expert that a token has twice is added once",
       [](LayerKernelCall& call) {
         const auto top_k = static_cast<std::size_t>(call.task.problem.top_k);
         for (std::size_t choice = 0; choice < call.ids.size(); ++choice) {
           for (std::size_t other = choice / top_k * top_k; other < choice; ++other) {
             call.ids[choice] = call.ids[other] == call.ids[choice] ? -1 : call.ids[choice];
           }
         }
         call.compute();
       }},
      {"gate and up are exchanged",
       [](LayerKernelCall& call) {
         std::swap(call.gate_up.b1, call.gate_up.b2);
         call.compute();
       }},
      {"the last choice is left out", [](LayerKernelCall& call) {
         for (std::size_t choice = 2; choice < call.ids.size(); choice += 3) {
           call.ids[choice] = -1;
         }
         call.compute();
       }}};
  for (const auto& [what, mistake] : mistakes) {
    EXPECT_FALSE(judged(experts(), mistake).correct) << what;
  }
}

TEST(LayerArena, AnIntermediateThatIsNotQuantizedIsFound) {
  for (const Format other : {Format::bf16, Format::fp8_row}) {
    const Finding finding = judged(quantised(), [&](LayerKernelCall& call) {
      call.task.problem.intermediate = other;
      call.compute();
    });
    EXPECT_FALSE(finding.correct) << name(other);
  }
}

/// Where the definition is too dear for every token, every 64 rows of every expert have one that is judged.
TEST(LayerArena, EveryTileOfALargeProblemIsSeen) {
  LayerTask task;
  task.problem = {.experts = 3, .tokens = 500, .top_k = 2, .hidden_size = 832, .intermediate_size = 448};
  task.total_experts = 3;
  const auto inputs = layer_inputs(task, Distribution::normal, 5);
  const auto find = [&](std::string_view name) {
    const auto one = std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == name; });
    return one == inputs.end() ? Tensor{} : one->view();
  };
  auto outputs = layer_outputs_of(task);
  LayerKernelCall call(task, find);
  call.tensors.out = outputs.front().view();
  call.compute();
  const auto judge = make_layer_judge(task, inputs, {DeviceKind::cpu}, 3);
  const Finding right = judge->judge(outputs);
  EXPECT_TRUE(right.correct) << right.sentence;
  const reference::SortedChoices sorted = reference::sorted_choices(task.problem, find("topk_ids"));
  for (std::int64_t expert = 0; expert < 3; ++expert) {
    const auto first = sorted.offsets[static_cast<std::size_t>(expert)];
    const auto end = sorted.offsets[static_cast<std::size_t>(expert) + 1];
    for (std::int32_t tile = first; tile < end; tile += 64) {
      auto wrong = outputs;
      for (std::int32_t row = tile; row < std::min(tile + 64, end); ++row) {
        const std::int64_t token = sorted.row_ids[static_cast<std::size_t>(row)] / 2;
        std::memset(&wrong.front().values[static_cast<std::size_t>(token * 832 * 2)], 0, 832 * 2);
      }
      EXPECT_FALSE(judge->judge(wrong).correct) << "rows of expert " << expert << " from " << tile - first;
    }
  }
}

TEST(LayerArena, CallsDifferInWhoIsChosenAndNotInHowMuchWorkThereIs) {
  LayerTask task = experts();
  task.routing = Routing::zipf;
  task.problem.tokens = 200;
  const ChoiceCounts counts = choice_counts(task);
  EXPECT_GT(counts.rows, 0);
  EXPECT_LT(counts.rows, task.choices());
  std::set<ChosenExperts> seen;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const ChosenExperts ids = chosen_experts(task, seed);
    seen.insert(ids);
    ASSERT_EQ(std::ssize(ids), task.choices());
    EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](std::int32_t id) { return id >= 0 && id < 5; }), counts.rows);
    bool has_repeated = false;
    for (std::size_t choice = 0; choice < ids.size(); choice += 3) {
      const std::set<std::int32_t> of_token(ids.begin() + static_cast<std::ptrdiff_t>(choice),
                                            ids.begin() + static_cast<std::ptrdiff_t>(choice) + 3);
      has_repeated = has_repeated || of_token.size() < 3;
    }
    EXPECT_TRUE(has_repeated);
    EXPECT_NE(other_choices(task, seed, 1), ids);
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST(LayerArena, OneHotRoutingSendsEveryTokenToOneExpert) {
  LayerTask task = experts();
  task.routing = Routing::one_hot;
  task.skipped = task.repeated = 0;
  std::vector<std::int64_t> counts(5, 0);
  for (const std::int32_t id : chosen_experts(task, 3)) {
    ++counts[static_cast<std::size_t>(id)];
  }
  EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), task.problem.tokens);
}

TEST(LayerArena, LabelsSayWhatIsNotTheDefault) {
  EXPECT_EQ(label_of(experts()),
            "5x128x48 bf16*bf16->bf16*bf16->bf16 19 tokens (3 of 5 uniform) skipped(6) repeated(4)");
  EXPECT_EQ(label_of(all_forms()[2]),
            "5x128x48 bf16*nvfp4->bf16*bf16->bf16 19 tokens (3 of 12 zipf) swiglu_clamped(1.702,7,1) bias(bf16) "
            "interleaved skipped(6) repeated(4)");
  EXPECT_EQ(label_of(all_forms()[3]),
            "5x128x48 nvfp4*nvfp4->nvfp4*nvfp4->bf16 19 tokens (3 of 5 uniform) scale(0.0625) skipped(6) repeated(4) "
            "blocked");
  EXPECT_EQ(label_of(all_forms()[4]), "17x64x48 bf16*bf16->bf16*bf16->bf16");
}

/// Of the suites that are timed, every problem is a layer's, and its compulsory bytes are those of active experts.
TEST(LayerArena, SuitesHaveModelsAndEdges) {
  for (const char* name : {"moe_layer", "moe_layer_bf16", "moe_layer_fp8", "gated_mlp", "gated_mlp_bf16",
                           "gated_mlp_fp8", "layer_edges", "gated_mlp_edges"}) {
    const Suite suite = load_suite(name);
    EXPECT_GE(suite.problems.size(), 7U) << name;
    EXPECT_EQ(suite.timed, std::string(name).find("edges") == std::string::npos);
    for (const Problem& problem : suite.problems) {
      EXPECT_GT(problem.operation().cost(problem).compulsory_bytes, 0) << label(problem);
    }
  }
  LayerTask few = experts();
  few.problem.experts = few.total_experts = 100;
  few.problem.tokens = 1;
  LayerTask many = few;
  many.problem.tokens = 100;
  const Operation& operation = moe_layer_operation();
  EXPECT_LT(20 * operation.cost(problem_of(few)).compulsory_bytes, operation.cost(problem_of(many)).compulsory_bytes);
}

TEST(LayerArena, ProblemsHaveNeighboursAndBecomeSmallUntilTheyAre) {
  for (const LayerTask& task : all_forms()) {
    const Problem problem = problem_of(task);
    const auto near = problem.operation().neighbour(problem);
    ASSERT_TRUE(near);
    EXPECT_NE(label(*near), label(problem));
  }
  for (const char* name : {"moe_layer", "moe_layer_fp8", "gated_mlp"}) {
    std::optional<Problem> problem = load_suite(name).problems.back();
    int steps = 0;
    while (auto half = problem->operation().smaller(*problem)) {
      problem = std::move(half);
      ASSERT_LT(++steps, 100);
    }
    EXPECT_LT(problem->operation().cost(*problem).operations, 1e9) << label(*problem);
  }
}

TEST(LayerArena, KnobsAreOfTheProductThatTheyName) {
  const MoeOptions options =
      layer_options(ContestantSpec{"moe_layer", "columns", {{"stages", "4"}, {"down", "rows"}, {"down.stages", "3"}}});
  EXPECT_EQ(options.gate_up.strategy, "columns");
  EXPECT_EQ(options.gate_up.knobs.text(), "stages=4");
  EXPECT_EQ(options.down.strategy, "rows");
  EXPECT_EQ(options.down.knobs.text(), "stages=3");
  EXPECT_EQ(layer_options(request_of(options)), options);
  EXPECT_EQ(request_of(MoeOptions{}).strategy, "planned");
  EXPECT_EQ(layer_options(request_of(MoeOptions{})), MoeOptions{});
}

std::string refusal(const ContestantSpec& spec) {
  try {
    (void)library_registry(Device::cpu())->create(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "none";
}

TEST(LayerArena, WhatThereIsNotIsRefused) {
  EXPECT_NE(refusal({"moe_layer", "columns"}).find("expected one of by_expert, planned"), std::string::npos);
  EXPECT_NE(refusal({"gated_mlp", "by_expert"}).find("expected one of two_pass, interleaved, planned"),
            std::string::npos);
  EXPECT_NE(refusal({"moe_layer", "planned", {{"down", "columns"}}}).find("columns"), std::string::npos);
  EXPECT_NE(refusal({"moe_layer", "by_expert", {{"stages", "3"}}}).find("stages"), std::string::npos);
  EXPECT_NE(refusal({"gated_mlp", "planned", {{"down", "by_expert"}, {"down.stages", "3"}}}).find("stages"),
            std::string::npos);
  EXPECT_NE(refusal({"moe_layer", "planned", {{"numerics", "fast"}}}).find("numerics of a layer is fast"),
            std::string::npos);
}

/// On a card that is not here: what would be launched, how long it takes, and why something cannot be.
TEST(LayerArena, TheOutlookIsOfBothProducts) {
  LayerTask task = experts();
  const DeviceSpec& card = device_spec("H200");
  const Operation& operation = moe_layer_operation();
  const PlannerResult outlook = operation.outlook(problem_of(task), {"moe_layer", "planned"}, card, {});
  ASSERT_TRUE(outlook.infeasible_reasons.empty()) << outlook.infeasible_reasons.front();
  EXPECT_GT(outlook.prediction.us(), 0);
  LayerTask large = task;
  large.problem.tokens = 2000;
  large.problem.hidden_size = large.problem.intermediate_size = 2048;
  const LayerCalls calls = calls_of(large, {}, card);
  EXPECT_GT(operation.outlook(problem_of(large), {"moe_layer", "planned"}, card, {}).prediction.us(),
            ops::forecast(calls.gate_up, card).us() + ops::forecast(calls.down, card).us());
  EXPECT_NE(outlook.prediction.why.find("gate_up: "), std::string::npos);
  EXPECT_NE(outlook.prediction.why.find("down: "), std::string::npos);
  EXPECT_NE(outlook.prediction.why.find("permuting by expert"), std::string::npos);
  EXPECT_NE(outlook.prediction.why.find("adding up the rows"), std::string::npos);
  const PlannerResult of_others = operation.outlook(problem_of(task), {"moe_layer", "packed"}, card, {});
  EXPECT_TRUE(of_others.is_for_other_formats);
  EXPECT_EQ(of_others.infeasible_reasons.front().substr(0, 9), "gate_up: ");
  task.problem.down = Format::fp8_block;
  const PlannerResult none = operation.outlook(problem_of(task), {"moe_layer", "planned"}, card, {});
  EXPECT_TRUE(none.is_for_other_formats);
  EXPECT_EQ(none.infeasible_reasons,
            std::vector<std::string>{"down: no strategy is made for bf16 with fp8_block to bf16 on H200"});
}

/// The chain of launches as a GPU would get them.
TEST(LayerArena, KernelsAreRightInTheEmulator) {
  for (const Operation* operation : {&moe_layer_operation(), &gated_mlp_operation()}) {
    const EmulatedOperation* const kernels = operation->emulated();
    ASSERT_NE(kernels, nullptr);
    for (const std::string& strategy : kernels->strategies()) {
      for (const auto& kernel : kernels->samples(strategy, nullptr)) {
        const Problem problem = kernel->edges().front();
        const Examination examined = examine(*kernel, problem, std::vector<std::uint64_t>{0, 5});
        EXPECT_TRUE(examined.clean()) << kernel->title() << " on " << label(problem) << ": " << examined.finding;
      }
    }
  }
}

HonestyOptions options() {
  HonestyOptions of;
  of.seed = 3;
  of.secret_seed = 1234567;
  of.calls_before_late_check = 30;
  of.wait_s = 0;
  return of;
}

std::string accusation(const LayerTask& task, const std::function<LayerKernel()>& make) {
  FakeRig rig;
  const auto results = probe_honesty(problem_of(task), PlantedLayerContestant(make, &rig.fake_clock()), rig, options());
  return results.back().accusation ? results.back().probe + ": " + results.back().accusation->sentence : "none";
}

TEST(LayerHonesty, NoHonestLayerIsAccused) {
  LayerTask rounded_to_zero = experts(Format::nvfp4);
  rounded_to_zero.problem.tokens = 5;
  rounded_to_zero.problem.intermediate_scale = 1e10F;
  for (const LayerTask& task : {experts(), quantised(), rounded_to_zero}) {
    EXPECT_EQ(accusation(task, [] { return LayerKernel([](LayerKernelCall& call) { call.compute(); }); }), "none");
  }
}

/// The choices of the first call on each set of inputs, for good.
TEST(LayerHonesty, WhoeverRemembersTheChoicesIsCaught) {
  EXPECT_NE(accusation(experts(),
                       [] {
                         auto kept = std::make_shared<std::map<std::size_t, std::vector<std::int32_t>>>();
                         return LayerKernel([kept](LayerKernelCall& call) {
                           call.ids = kept->try_emplace(call.set, call.ids).first->second;
                           call.compute();
                         });
                       }),
            "none");
}

}  // namespace
}  // namespace thresher::arena
