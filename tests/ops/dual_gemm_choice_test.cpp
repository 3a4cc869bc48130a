// Which strategy is chosen with which knobs, and what is refused. No GPU is needed.
#include "ops/product_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ops/cuda_device_spec.hpp"
#include "ops/cuda_programs.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::KernelLaunch;
using strategies::PlannedCall;

const DeviceSpec& h200() { return device_spec("H200"); }

DualGemmProblem bf16(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
}

PlannedCall chosen(const DualGemmProblem& problem, const planner::Request& request = {},
                   const DeviceSpec& device = h200()) {
  return choose_product(problem, request, DeviceKind::cuda, device);
}

std::string refusal(const DualGemmProblem& problem, const planner::Request& request,
                    const DeviceSpec& device = h200()) {
  try {
    (void)chosen(problem, request, device);
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

Format format(const std::string& text) { return *parse_format(text); }

struct Case {
  DeviceSpec device;
  DualGemmProblem problem;
  planner::Request request;
};

Case parse_case(const std::string& line) {
  std::istringstream words(line);
  std::string device;
  std::string a;
  std::string b;
  std::string out;
  std::string asked;
  int multiprocessors = 0;
  Case one;
  words >> device >> multiprocessors >> one.problem.m >> one.problem.n >> one.problem.k >> a >> b >> out >> asked;
  one.problem.a = format(a);
  one.problem.b = format(b);
  one.problem.out = format(out);
  one.device = with_multiprocessors(device_spec(device), multiprocessors);
  one.request.strategy = asked == "-" ? "" : asked.substr(0, asked.find('_'));
  if (one.request.strategy != "packed") {  // whose predictor counted blocks and no clusters
    one.device.resident_clusters = device_spec(device).resident_clusters;
  }
  if (asked.find('_') != std::string::npos) {
    one.request.knobs.set("numerics", asked.substr(asked.find('_') + 1));
  }
  return one;
}

// A choice changes on purpose only: whoever changes one has measured it.
TEST(DualGemmChoice, IsWhatWasRecorded) {
  std::ifstream file(THRESHER_SOURCE_DIR "/tests/ops/dual_gemm_choices.txt");
  std::string choice;
  std::size_t cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    if (!line.starts_with(' ')) {
      choice = line;
      continue;
    }
    const Case one = parse_case(line);
    const PlannedCall call = chosen(one.problem, one.request, one.device);
    EXPECT_EQ(call.strategy + " " + call.knobs.text(), choice) << line;
    ++cases;
  }
  EXPECT_GT(cases, 500U);
}

// A choice that the library has no machine code for costs its user a compilation.
TEST(DualGemmChoice, OriginShapesAreBuiltIn) {
  std::vector<std::string> built_in;
  for (const strategies::DeviceProgram& program : default_programs("sm_90a")) {
    built_in.insert(built_in.end(), program.kernels.begin(), program.kernels.end());
  }
  for (const auto& [m, n, k] : {std::tuple{256, 4096, 7168}, {512, 4096, 7168}, {256, 3072, 4096}, {512, 3072, 7168}}) {
    for (const DualGemmProblem& problem :
         {bf16(m, n, k), DualGemmProblem{.m = m, .n = n, .k = k, .a = Format::nvfp4, .b = Format::nvfp4}}) {
      const PlannedCall call = chosen(problem);
      for (const strategies::Step& step : call.steps) {
        const std::string& expression = std::get<KernelLaunch>(step).expression;
        EXPECT_NE(std::find(built_in.begin(), built_in.end(), expression), built_in.end()) << expression;
      }
    }
  }
}

// What `thresher warm --arch sm_100f` compiles is what a card of that family asks for.
TEST(DualGemmChoice, OriginShapesAreWarmedForBlackwell) {
  std::vector<std::string> warmed;
  for (const strategies::DeviceProgram& program : default_programs("sm_100f")) {
    warmed.insert(warmed.end(), program.kernels.begin(), program.kernels.end());
  }
  for (const auto& [m, n, k] :
       {std::tuple{256, 4096, 7168}, {512, 4096, 7168}, {256, 3072, 4096}, {512, 3072, 7168}, {16, 4096, 7168}}) {
    for (const char* device : {"B200", "GB300"}) {
      const PlannedCall call =
          chosen({.m = m, .n = n, .k = k, .a = Format::nvfp4, .b = Format::nvfp4}, {}, device_spec(device));
      EXPECT_EQ(call.strategy, "tcgen05");
      for (const strategies::Step& step : call.steps) {
        const std::string& expression = std::get<KernelLaunch>(step).expression;
        EXPECT_NE(std::find(warmed.begin(), warmed.end(), expression), warmed.end()) << device << " " << expression;
      }
    }
  }
}

TEST(DualGemmChoice, WhatNoFusedStrategyTakesGoesToTheLibrarysProducts) {
  DualGemmProblem mixed = bf16(16, 64, 64);
  mixed.b = Format::fp16;
  EXPECT_EQ(chosen(mixed).strategy, "two_pass");
  EXPECT_EQ(chosen(bf16(16, 64, 64), {}, device_spec("B200")).strategy, "two_pass");
}

TEST(DualGemmChoice, KnobsAreTakenAsTheyAreAndTheRestIsChosen) {
  const PlannedCall call =
      chosen(bf16(512, 4096, 7168),
             {.strategy = "interleaved",
              .knobs = Knobs::parse("block_outputs=96 warpgroup_tiles=2 stages=4 multicast=2 raster=columns_first")});
  EXPECT_EQ(*call.knobs.find("block_outputs"), "96");
  EXPECT_EQ(*call.knobs.find("multicast"), "2");
  EXPECT_EQ(*call.knobs.find("raster"), "columns_first");
  EXPECT_EQ(*call.knobs.find("epilogue"), "tma");
}

/// dependent_launch is of the launch and of nothing else, and the launch has it.
TEST(DualGemmChoice, EveryKnobChangesWhatIsLaunched) {
  for (const char* value : {"false", "true"}) {
    const PlannedCall call =
        chosen(bf16(512, 4096, 7168), {.strategy = "interleaved", .knobs = {{"dependent_launch", value}}});
    EXPECT_EQ(std::get<KernelLaunch>(call.steps.front()).dependent, std::string(value) == "true");
  }
}

TEST(DualGemmChoice, RefusalsNameTheNumberAndTheLimit) {
  const DualGemmProblem origin = bf16(512, 4096, 7168);
  EXPECT_NE(refusal(origin, {.strategy = "interleaved",
                             .knobs = Knobs::parse("block_outputs=128 math_warpgroups=2 warpgroup_tiles=1 stages=5")})
                .find("over the limit of 232448"),
            std::string::npos);
  EXPECT_NE(
      refusal(origin, {.strategy = "pingpong", .knobs = Knobs::parse("persistent=false")}).find("cannot alternate"),
      std::string::npos);
  EXPECT_NE(refusal(origin, {.strategy = "interleaved", .knobs = Knobs::parse("turbo=9")}).find("has no knob turbo"),
            std::string::npos);
  EXPECT_NE(refusal(origin, {.strategy = "packed"}).find("nvfp4 weights and a Hopper GPU"), std::string::npos);
  EXPECT_NE(refusal(origin, {.strategy = "", .knobs = {{"numerics", "fast"}}}).find("nvfp4 weights and a Hopper GPU"),
            std::string::npos);
}

TEST(DualGemmChoice, APlanServesEveryNumberOfRows) {
  EXPECT_EQ(planned_rows(1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(planned_rows(4), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(planned_rows(100), (std::vector<std::int64_t>{4, 8, 16, 32, 64, 100}));
}

// A card with fewer multiprocessors holds fewer clusters, and a name within another name is another card.
TEST(CudaDeviceSpec, CountsClustersByMultiprocessors) {
  const DeviceSpec half = with_multiprocessors(h200(), 66);
  EXPECT_EQ(half.multiprocessors, 66);
  EXPECT_EQ(half.resident_clusters[0], 33);
  EXPECT_EQ(find_device_spec("NVIDIA GH200 480GB"), nullptr);
  EXPECT_EQ(find_device_spec("NVIDIA H200 NVL"), &h200());
}

}  // namespace
}  // namespace thresher::ops
