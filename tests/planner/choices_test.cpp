// Every candidate can be launched, and is as much work as the chooser was told.
#include <gtest/gtest.h>

#include "planner/choose.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/gemm/registry.hpp"

namespace thresher::planner {
namespace {

using strategies::gemm::Product;

// One number says what a launch takes and what is in the way of it.
TEST(Choices, EveryCandidatesLaunchesFitTheDevice) {
  const DeviceSpec& device = device_spec("H200");
  for (const Format b : {Format::fp16, Format::nvfp4}) {
    const DualGemmProblem problem{.m = 300, .n = 4096, .k = 7168, .a = Format::fp16, .b = b, .out = Format::fp16};
    const auto all = strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda);
    for (const Choice& choice : choose<strategies::gemm::ProductProblem>(all, problem, {}, device).ranked) {
      for (const strategies::Step& step :
           planned<strategies::gemm::ProductProblem>(all, problem, choice, device).steps) {
        if (const auto* const launch = std::get_if<strategies::KernelLaunch>(&step)) {
          EXPECT_LE(launch->shared_bytes, static_cast<std::uint32_t>(device.shared_bytes_per_block));
          EXPECT_LE(launch->block.x, static_cast<std::uint32_t>(device.max_threads_per_block));
        }
      }
    }
  }
}

// One token of gpt-oss has four experts of few tiles; with 64 tokens there are tiles for all multiprocessors.
TEST(Choices, FewTilesOfGroupsDivideK) {
  const auto blocks = [](std::int64_t rows) {
    const GroupedProblem problem{.experts = 32,
                                 .rows = rows,
                                 .n = 2880,
                                 .k = 2880,
                                 .expected_rows = rows,
                                 .a = Format::bf16,
                                 .b = Format::nvfp4,
                                 .out = Format::bf16};
    const auto all = strategies::gemm::strategies_of(Product::grouped, DeviceKind::cuda);
    const Choices choices = choose<strategies::gemm::ProductProblem>(all, problem, {}, device_spec("H200"));
    return std::stoi(*choices.ranked.front().knobs.find("split_k"));
  };
  EXPECT_GT(blocks(4), 1);
  EXPECT_EQ(blocks(256), 1);
}

template <class Problem>
void expect_planned_work(strategies::Strategies<Problem> all, const Problem& problem) {
  const DeviceSpec& device = device_spec("H200");
  for (const strategies::Strategy<Problem>* const strategy : all) {
    for (const Knobs& knobs : strategy->candidates(problem, {}, device)) {
      EXPECT_EQ(strategy->work(problem, knobs, device), strategy->plan(problem, knobs, device).work)
          << strategy->name() << " " << knobs.text();
    }
  }
}

// The chooser asks for the work alone; were it another than the plan's, predictions would not be of what is launched.
TEST(Choices, EveryCandidatesWorkIsItsPlans) {
  for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::cpu}) {
    for (const Format b : {Format::fp16, Format::nvfp4}) {
      for (const std::int64_t m : {1, 40, 256, 2048}) {
        for (const std::int64_t k : {7168, 7184}) {
          const DualGemmProblem problem{.m = m, .n = 4096, .k = k, .a = Format::fp16, .b = b, .out = Format::fp16};
          expect_planned_work<strategies::gemm::ProductProblem>(
              strategies::gemm::strategies_of(Product::dual_gemm, kind), problem);
        }
      }
    }
    for (const std::int64_t length : {128, 512, 4096}) {
      expect_planned_work<AttentionProblem>(strategies::attention::registry().of(kind),
                                            {.heads = 8, .kv_heads = 8, .queries = length, .keys = length});
    }
  }
}

}  // namespace
}  // namespace thresher::planner
