// What every strategy of the dual GEMM says of itself, and the calls that it plans: values that hold together.
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma/fused/kernel.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies::gemm {
namespace {

const DeviceSpec& h200() { return device_spec("H200"); }

/// Addresses that are never followed.
void* somewhere() { return reinterpret_cast<void*>(std::uintptr_t{256}); }

std::vector<Tensor> tensors_of(const ProductProblem& problem) {
  const auto tensor = [](Format format, std::int64_t rows, std::int64_t columns) {
    Tensor made = Tensor::contiguous(somewhere(), format, {rows, columns});
    made.scales.data = somewhere();
    return made;
  };
  return {tensor(problem.a, problem.rows, problem.k), tensor(problem.b, problem.n, problem.k),
          problem.activation ? tensor(problem.b, problem.n, problem.k) : Tensor{},
          tensor(problem.out, problem.rows, problem.n)};
}

// A member that a table forgot would silently keep its default in device code.
TEST(KnobTables, NameEveryMember) {
  EXPECT_EQ(fused::knob_table().size(), member_count<fused::Config>);
  EXPECT_EQ(gemm::wgmma::knob_table(false).size(), member_count<gemm::wgmma::Config>);
  EXPECT_EQ(gemm::wgmma::knob_table(true).size(), member_count<gemm::wgmma::Config>);
  EXPECT_EQ(wgmma_dequant::knob_table().size(), member_count<wgmma_dequant::Config>);
  EXPECT_EQ(gemm::tcgen05::knob_table(false).size(), member_count<gemm::tcgen05::Config>);
  EXPECT_EQ(gemm::tcgen05::knob_table(true).size(), member_count<gemm::tcgen05::Config>);
}

TEST(KnobTables, SpellEveryMemberThatTheCodeDependsOn) {
  fused::Config config{.order = fused::Order::pingpong, .stages = 7, .dependent_launch = true};
  const std::string code = fused::knob_table().spelling(config);
  EXPECT_NE(code.find(".stages = 7"), std::string::npos);
  EXPECT_NE(code.find(".order = thresher::strategies::gemm::fused::Order::pingpong"), std::string::npos);
  config.dependent_launch = false;
  EXPECT_EQ(fused::knob_table().spelling(config), code);
}

TEST(KnobTables, ReadBackWhatTheyPrint) {
  const wgmma_dequant::Config config{.numerics = Numerics::fast, .block_tokens = 64, .math_registers = 216};
  const Knobs knobs = wgmma_dequant::knob_table().knobs(config);
  EXPECT_EQ(wgmma_dequant::knob_table().with({}, Knobs::parse(knobs.text()), "packed"), config);
}

/// The first of the table that the strategy is made for.
const DeviceSpec& card_for(const Strategy<ProductProblem>& strategy, const ProductProblem& problem) {
  for (const DeviceSpec& device : device_specs()) {
    if (!strategy.unsupported_reason(problem, device)) {
      return device;
    }
  }
  return h200();
}

class EveryStrategy : public ::testing::TestWithParam<const Strategy<ProductProblem>*> {};

TEST_P(EveryStrategy, SamplesAndBuiltInCallsHaveNoObstacle) {
  const auto& strategy = *GetParam();
  for (const auto& samples :
       {of_product(strategy.samples(), Product::dual_gemm), of_product(strategy.built_in(), Product::dual_gemm)}) {
    for (const auto& [problem, knobs] : samples) {
      EXPECT_EQ(strategy.infeasible_reasons(problem, knobs, card_for(strategy, problem)), std::vector<std::string>{})
          << knobs.text();
    }
  }
}

TEST_P(EveryStrategy, BindsEveryNumberOfRowsUpToThePlanned) {
  const auto& strategy = *GetParam();
  for (const auto& [planned, knobs] : of_product(strategy.samples(), Product::dual_gemm)) {
    const PlannedCall call = strategy.plan(planned, knobs, card_for(strategy, planned));
    for (const std::int64_t rows : {std::int64_t{1}, planned.rows}) {
      ProductProblem problem = planned;
      problem.rows = rows;
      const std::vector<Tensor> tensors = tensors_of(problem);
      for (const Step& step : call.steps) {
        LaunchArguments arguments;
        const auto& launch = std::get<KernelLaunch>(step);
        EXPECT_TRUE(launch.bind({tensors, somewhere(), somewhere()}, arguments)) << knobs.text();
        EXPECT_GT(arguments.grid.x, 0U);
        EXPECT_EQ(arguments.grid.x % launch.cluster.x, 0U);
        for (const LaunchArguments::Map& map : arguments.maps()) {
          EXPECT_LE(map.offset + sizeof(machine::TensorMap), arguments.size());
        }
      }
    }
  }
}

TEST_P(EveryStrategy, NamesTheMemoryOfEveryLaunch) {
  const auto& strategy = *GetParam();
  for (const auto& [problem, knobs] : of_product(strategy.samples(), Product::dual_gemm)) {
    const PlannedCall call = strategy.plan(problem, knobs, card_for(strategy, problem));
    for (const Step& step : call.steps) {
      for (const Access& access : std::get<KernelLaunch>(step).accesses) {
        const std::size_t count = access.memory == Access::Memory::workspace ? call.workspace.size()
                                  : access.memory == Access::Memory::packed  ? call.packed.size()
                                                                             : std::size_t{tensor_count};
        EXPECT_LT(access.index, count);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfAGpu, EveryStrategy,
                         ::testing::ValuesIn(strategies_of(Product::dual_gemm, DeviceKind::cuda)),
                         [](const auto& tested) { return std::string(tested.param->name()); });

// The same kernel, with another one for an output that TMA cannot address.
TEST(FusedStrategies, StoreDirectlyWhereTheCopyEngineCannot) {
  const DualGemmProblem problem{
      .m = 256, .n = 4096, .k = 7168, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  const auto& interleaved =
      *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "interleaved");
  const PlannedCall call = interleaved.plan(problem, {{"epilogue", "tma"}}, h200());
  const auto& staged = std::get<KernelLaunch>(call.steps.front());
  std::vector<Tensor> tensors = tensors_of(problem);
  tensors[output_index].strides[0] += 1;
  LaunchArguments arguments;
  EXPECT_FALSE(staged.bind({tensors}, arguments));
  ASSERT_NE(staged.alternative, nullptr);
  EXPECT_TRUE(staged.alternative->bind({tensors}, arguments));
  EXPECT_EQ(staged.expected.min_tma_stores, 1);
  EXPECT_EQ(staged.alternative->expected.min_tma_stores, 0);
}

// 40 and twice 240 registers a thread, of which 384 threads have 3 times 168.
TEST(FusedStrategies, HandOverNoMoreRegistersThanThereAre) {
  const DualGemmProblem problem{.m = 256, .n = 256, .k = 4096, .a = Format::bf16, .b = Format::bf16};
  const auto& interleaved =
      *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "interleaved");
  const std::string tile = "block_outputs=64 stages=4 math_registers=240 loader_registers=";
  const auto infeasible_reasons = interleaved.infeasible_reasons(problem, Knobs::parse(tile + "40"), h200());
  ASSERT_EQ(infeasible_reasons.size(), 1U);
  EXPECT_NE(infeasible_reasons[0].find("over the pool of 504"), std::string::npos) << infeasible_reasons[0];
  EXPECT_EQ(interleaved.infeasible_reasons(problem, Knobs::parse(tile + "24"), h200()), std::vector<std::string>{});
}

// Tokens of 16 bits are read where they lie when they fill whole blocks along K; nothing is prepared.
// 16 slots and the staging are all that a block may have: their barriers are too much.
TEST(FusedStrategies, NeedNoMoreSharedMemoryThanABlockMayHave) {
  const DualGemmProblem problem{.m = 256, .n = 256, .k = 4096, .a = Format::bf16, .b = Format::bf16};
  const Knobs most = Knobs::parse("math_warpgroups=1 block_outputs=24 stages=16 epilogue=tma persistent");
  const auto& interleaved =
      *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "interleaved");
  const auto infeasible_reasons = interleaved.infeasible_reasons(problem, most, h200());
  ASSERT_EQ(infeasible_reasons.size(), 1U);
  EXPECT_NE(infeasible_reasons[0].find("shared memory: 232728 bytes"), std::string::npos) << infeasible_reasons[0];
  Knobs fewer = most;
  fewer.set("stages", "15");
  EXPECT_EQ(interleaved.infeasible_reasons(problem, fewer, h200()), std::vector<std::string>{});
}

TEST(PackedStrategy, PreparesTokensOnlyWhereItMust) {
  const auto& strategy = *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "packed");
  DualGemmProblem problem{.m = 16, .n = 64, .k = 512, .a = Format::fp16, .b = Format::nvfp4};
  EXPECT_EQ(strategy.plan(problem, {}, h200()).preparation_steps, 0U);
  EXPECT_EQ(strategy.plan(problem, {{"numerics", "fast"}}, h200()).preparation_steps, 1U);
  problem.k = 528;
  EXPECT_EQ(strategy.plan(problem, {}, h200()).preparation_steps, 1U);
}

TEST(PackedStrategy, LaysOutPackedWeightsForFilesByName) {
  const auto& strategy = *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "packed");
  const DualGemmProblem problem{.m = 16, .n = 64, .k = 512, .a = Format::fp16, .b = Format::nvfp4};
  EXPECT_EQ(strategy.plan(problem, {}, h200()).packed_layout, "nvfp4-exact-sm90-2");
  EXPECT_EQ(strategy.plan(problem, {{"numerics", "fast"}}, h200()).packed_layout, "nvfp4-fast-sm90-1");
}

/// Tiles of groups may be as wide as that; static ones are not.
TEST(PackedStrategies, StaticTilesHavePowersOfTwoTokens) {
  const DualGemmProblem problem{.m = 96, .n = 64, .k = 512, .a = Format::fp16, .b = Format::nvfp4};
  EXPECT_EQ(gemm::packed_strategy().infeasible_reasons(problem, {{"block_tokens", "96"}}, h200()),
            std::vector<std::string>{"tile: 96 tokens are no width where widths are powers of two"});
}

/// They read tokens as 16-bit numbers, or NVFP4 that a kernel before them widens or folds.
TEST(PackedStrategies, TakeNoTokensInFpEight) {
  DualGemmProblem problem{.m = 64, .n = 128, .k = 256, .a = Format::fp8_row, .b = Format::nvfp4, .out = Format::fp16};
  const GroupedProblem grouped{
      .experts = 2, .rows = 64, .n = 128, .k = 256, .a = problem.a, .b = problem.b, .out = problem.out};
  const std::string sentence =
      "strategy packed needs fp16, bf16 or nvfp4 tokens, nvfp4 weights and a Hopper GPU, not fp8_row with nvfp4 on "
      "H200";
  EXPECT_EQ(find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "packed")
                ->unsupported_reason(problem, h200()),
            sentence);
  EXPECT_EQ(gemm::packed_strategy().unsupported_reason(grouped, h200()), sentence);
}

TEST(OneGroupStrategies, TakeFpEightOnHopper) {
  for (const char* const name : {"columns", "rows"}) {
    const Strategy<ProductProblem>& strategy =
        *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), name);
    DualGemmProblem problem{
        .m = 256, .n = 4096, .k = 7168, .a = Format::fp8_row, .b = Format::fp8_row, .out = Format::bf16};
    EXPECT_EQ(strategy.unsupported_reason(problem, h200()), std::nullopt);
    EXPECT_NE(strategy.unsupported_reason(problem, device_spec("B200")), std::nullopt);
    EXPECT_FALSE(strategy.candidates(problem, {}, h200()).empty());
    EXPECT_FALSE(strategy.candidates(problem, {{"numerics", "fast"}}, h200()).empty());
    const PlannedCall call = strategy.plan(problem, strategy.candidates(problem, {}, h200()).front(), h200());
    EXPECT_EQ(call.workspace_bytes(), 0U);
    EXPECT_TRUE(call.packed.empty());
    EXPECT_EQ(call.steps.size(), 1U);
    problem.a = Format::fp8_block;
    problem.b = Format::bf16;
    EXPECT_EQ(strategy.unsupported_reason(problem, h200()),
              std::string("strategy ") + name +
                  " takes FP8 with FP8, and 16 bits with the same where outputs are quantized, on a Hopper GPU, not "
                  "fp8_block with bf16 to bf16 on H200");
    EXPECT_EQ(strategy.candidates(problem, {}, h200()), std::vector<Knobs>{});
    problem.a = problem.b = Format::bf16;
    EXPECT_NE(strategy.unsupported_reason(problem, h200()), std::nullopt);
  }
}

/// Every pair of operands that a Hopper GPU multiplies has a strategy for outputs in FP8 and NVFP4, on the GPU alone
/// that is one; no other has.
TEST(QuantizedOutputs, OfEveryOperandOnHopper) {
  constexpr std::array sixteen{Format::fp16, Format::bf16};
  constexpr std::array fp8{Format::fp8_tensor, Format::fp8_row, Format::fp8_block};
  std::vector<std::pair<Format, Format>> pairs;
  for (const Format a : {Format::fp16, Format::bf16, Format::nvfp4}) {
    pairs.emplace_back(a, Format::nvfp4);
  }
  for (const Format a : sixteen) {
    pairs.emplace_back(a, a);
  }
  for (const Format a : fp8) {
    for (const Format b : fp8) {
      pairs.emplace_back(a, b);
    }
  }
  for (const auto& [a, b] : pairs) {
    for (const Format out : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
      const DualGemmProblem problem{.m = 256, .n = 4096, .k = 7168, .a = a, .b = b, .out = out};
      int made = 0;
      for (const Strategy<ProductProblem>* const strategy : strategies_of(Product::dual_gemm, DeviceKind::cuda)) {
        EXPECT_TRUE(strategy->unsupported_reason(problem, device_spec("B200"))) << strategy->name();
        if (strategy->unsupported_reason(problem, h200())) {
          continue;
        }
        const std::vector<Knobs> candidates = strategy->candidates(problem, {}, h200());
        made += candidates.empty() ? 0 : 1;
        for (const Knobs& knobs : candidates) {
          EXPECT_EQ(strategy->plan(problem, knobs, h200()).work, strategy->work(problem, knobs, h200()))
              << strategy->name();
        }
      }
      const int strategies = b == Format::nvfp4 ? 1 : thresher::bits(a) == 8 ? 2 : 5;
      EXPECT_EQ(made, strategies) << name(a) << " with " << name(b) << " to " << name(out);
    }
  }
}

/// Weights are packed before anybody knows what outputs will be: the layout is the same.
TEST(QuantizedOutputs, ReadWeightsThatWerePackedForAnyOther) {
  const Strategy<ProductProblem>& packed =
      *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "packed");
  for (const char* const numerics : {"exact", "fast"}) {
    const Knobs knobs{{"numerics", numerics}};
    DualGemmProblem problem{.m = 33, .n = 256, .k = 512, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp16};
    const PlannedCall plain = packed.plan(problem, knobs, h200());
    problem.out = Format::fp8_row;
    const PlannedCall quantized = packed.plan(problem, knobs, h200());
    EXPECT_EQ(quantized.packed_layout, plain.packed_layout);
    EXPECT_EQ(quantized.packed_bytes(), plain.packed_bytes());
    EXPECT_EQ(quantized.preparation_steps, plain.preparation_steps);
    EXPECT_EQ(quantized.steps.size(), plain.steps.size() + 1);
    EXPECT_EQ(quantized.workspace_bytes(), (plain.workspace_bytes() + 255) / 256 * 256 + 33 * 256 * 4);
  }
}

// Of one group it is known how many tiles it has: a block more would find nothing to do.
TEST(OneGroupStrategies, LaunchABlockForEachTile) {
  const Strategy<ProductProblem>& strategy =
      *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "rows");
  const DualGemmProblem planned{
      .m = 256, .n = 128, .k = 1024, .a = Format::fp8_row, .b = Format::fp8_row, .out = Format::bf16};
  const PlannedCall call = strategy.plan(planned, Knobs::parse("block_tokens=128 block_outputs=32"), h200());
  EXPECT_EQ(std::get<TiledKernel>(call.work.parts.front()).blocks, 8);
  for (const auto& [rows, blocks] : {std::pair{1, 4U}, {128, 4U}, {129, 8U}, {256, 8U}}) {
    DualGemmProblem problem = planned;
    problem.m = rows;
    const std::vector<Tensor> tensors = tensors_of(problem);
    LaunchArguments arguments;
    EXPECT_TRUE(std::get<KernelLaunch>(call.steps.front()).bind({tensors}, arguments));
    EXPECT_EQ(arguments.grid.x, blocks) << rows;
  }
}

TEST(TwoPassStrategy, WidensWeightsThatTheLibraryCannotRead) {
  const auto& strategy =
      *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "two_pass");
  const DualGemmProblem plain{.m = 16, .n = 64, .k = 512, .a = Format::fp16, .b = Format::fp16};
  const std::vector<Knobs> both = strategy.candidates(plain, {}, h200());
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(strategy.plan(plain, both[0], h200()).alignments.size(), 2U);
  EXPECT_TRUE(strategy.plan(plain, both[1], h200()).alignments.empty());
  DualGemmProblem mixed = plain;
  mixed.b = Format::nvfp4;
  EXPECT_EQ(strategy.candidates(mixed, {}, h200()).size(), 1U);
}

}  // namespace
}  // namespace thresher::strategies::gemm
