// What the strategies of grouped products say of themselves: what stands in their way, and nothing else does.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/device_spec.hpp"
#include "pipeline/grouped/groups.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma/config.hpp"

namespace thresher::strategies::gemm::grouped {
namespace {

const DeviceSpec& h200() { return device_spec("H200"); }

const Strategy<ProductProblem>& strategy(std::string_view name) {
  return *find_strategy<ProductProblem>(strategies_of(Product::grouped, DeviceKind::cuda), name);
}

const DeviceSpec& b200() { return device_spec("B200"); }

const std::vector<std::string> nothing{};

/// That exactly one thing is in the way, which begins so.
void expect_one(const std::vector<std::string>& infeasible_reasons, const std::string& beginning) {
  ASSERT_EQ(infeasible_reasons.size(), 1U);
  EXPECT_EQ(infeasible_reasons[0].substr(0, beginning.size()), beginning);
}

GroupedProblem in_16_bits() {
  return {.experts = 8, .rows = 512, .n = 256, .k = 512, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
}
GroupedProblem in_nvfp4() {
  return {.experts = 8, .rows = 512, .n = 256, .k = 512, .a = Format::fp16, .b = Format::nvfp4, .out = Format::fp16};
}

TEST(GroupedStrategies, SamplesAndBuiltInCallsHaveNoObstacle) {
  for (const auto* of_a_gpu : strategies_of(Product::grouped, DeviceKind::cuda)) {
    for (const auto& samples : {of_a_gpu->samples(), of_a_gpu->built_in()}) {
      for (const auto& [problem, knobs] : samples) {
        const DeviceSpec& card = of_a_gpu->unsupported_reason(problem, h200()) ? b200() : h200();
        EXPECT_EQ(of_a_gpu->infeasible_reasons(problem, knobs, card), nothing) << knobs.text();
      }
    }
  }
}

/// Sums in tensor memory, a set of scales for each slot, a directory behind the slots.
TEST(GroupedStrategies, SumsAndScalesFitIntoTensorMemory) {
  GroupedProblem problem = in_nvfp4();
  problem.a = Format::nvfp4;
  EXPECT_EQ(strategy("tcgen05").infeasible_reasons(problem, Knobs::parse("block_tokens=128 stages=7"), b200()),
            nothing);
  EXPECT_EQ(strategy("tcgen05").infeasible_reasons(problem, Knobs::parse("block_tokens=160 stages=4"), b200()),
            nothing);
  expect_one(strategy("tcgen05").infeasible_reasons(problem, Knobs::parse("block_tokens=160 stages=5"), b200()),
             "tensor memory: 560 columns");
  expect_one(strategy("tcgen05").infeasible_reasons(problem, Knobs::parse("block_tokens=128 stages=8"), b200()),
             "shared memory: ");
  expect_one(strategy("tcgen05").infeasible_reasons(problem, Knobs::parse("block_tokens=128 stages=7"), h200()),
             "strategy tcgen05 needs nvfp4 tokens");
  expect_one(strategy("tcgen05").infeasible_reasons(problem, Knobs::parse("block_tokens=48 stages=2"), b200()),
             "tile: 48 tokens are no width where widths are powers of two");
  EXPECT_FALSE(strategy("tcgen05").candidates(problem, {}, b200()).empty());
}

/// A block of 128 outputs lies in two warpgroups of columns, or in one tile of rows. What lies elsewhere is left in
/// float32 for a launch of its own; on Blackwell nothing is quantized.
TEST(GroupedStrategies, QuantizedOutputsOfHopper) {
  GroupedProblem problem = in_16_bits();
  problem.activation = Activation{};
  problem.n = 256;
  problem.out = Format::fp8_block;
  const Strategy<ProductProblem>& columns = strategy("columns");
  const Strategy<ProductProblem>& rows = strategy("rows");
  EXPECT_EQ(columns.infeasible_reasons(problem, {}, h200()), nothing);
  EXPECT_EQ(rows.infeasible_reasons(problem, {}, h200()), nothing);
  EXPECT_FALSE(columns.candidates(problem, {}, h200()).empty());
  EXPECT_FALSE(rows.candidates(problem, {}, h200()).empty());
  expect_one(columns.infeasible_reasons(problem, Knobs::parse("by_turns=true stages=6"), h200()),
             "quantized output: a warpgroup makes 64 of the 128 outputs");
  expect_one(columns.infeasible_reasons(problem, Knobs::parse("math_warpgroups=1 block_tokens=64"), h200()),
             "quantized output: a warpgroup makes 64 of the 128 outputs");
  expect_one(rows.infeasible_reasons(problem, Knobs::parse("block_outputs=64 block_tokens=128"), h200()),
             "quantized output: 128 outputs share a scale, a tile has 64");
  problem.out = Format::fp8_tensor;
  EXPECT_EQ(columns.infeasible_reasons(problem, Knobs::parse("by_turns=true stages=6"), h200()), nothing);
  const auto launches = [&](const char* name) {
    const Strategy<ProductProblem>& of = strategy(name);
    return of.plan(problem, of.candidates(problem, {}, h200()).front(), h200()).steps.size();
  };
  EXPECT_EQ(launches("columns"), 1U);
  for (const Format out : {Format::fp8_row, Format::nvfp4}) {
    problem.out = out;
    EXPECT_EQ(launches("columns"), 2U);
    EXPECT_EQ(launches("rows"), 2U);
  }
  problem.out = Format::fp8_block;
  EXPECT_EQ(launches("rows"), 1U);
  problem.a = problem.b = Format::fp8_block;
  EXPECT_EQ(launches("columns"), 1U);
  EXPECT_EQ(launches("rows"), 1U);
  expect_one(rows.infeasible_reasons(problem, Knobs::parse("block_outputs=96 stages=5"), h200()),
             "quantized output: 128 outputs share a scale, a tile has 96");
  expect_one(rows.infeasible_reasons(problem, Knobs::parse("by_turns=true"), h200()),
             "registers: a consumer thread needs about ");
  problem.activation.reset();
  EXPECT_EQ(launches("rows"), 1U);
  problem.a = Format::fp16;
  problem.b = Format::nvfp4;
  EXPECT_EQ(launches("packed"), 2U);
  problem.a = problem.b = Format::bf16;
  expect_one(strategy("tcgen05_plain").infeasible_reasons(problem, {}, b200()),
             "strategy tcgen05_plain does not quantize its outputs to fp8_block");
}

/// Warpgroups that share a tile of rows take whole tiles of the instruction each.
TEST(GroupedStrategies, WarpgroupsThatShareRowsHaveAllOfThem) {
  GroupedProblem problem = in_16_bits();
  problem.activation = Activation{};
  const Knobs knobs = Knobs::parse("math_warpgroups=3 by_turns=false block_outputs=32 stages=2 block_tokens=256");
  expect_one(strategy("rows").infeasible_reasons(problem, knobs, h200()),
             "rows: 256 tokens are not a multiple of the 192 that 3 warpgroups share");
}

/// Only dense rows are known at a launch, and whoever shares K has some of it.
TEST(GroupedStrategies, StaticTilesAreOfDenseRows) {
  GroupedProblem grouped_problem = in_16_bits();
  const ProductProblem dense(
      GemmProblem{.m = 16, .n = 256, .k = 256, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
  const Strategy<ProductProblem>& columns = strategy("columns");
  const auto knobs = [](const char* more) {
    return Knobs::parse(std::string("math_warpgroups=1 block_tokens=16 stages=4 ") + more);
  };
  EXPECT_EQ(columns.infeasible_reasons(dense, knobs("static_tiles=true split_k=4"), h200()), nothing);
  expect_one(columns.infeasible_reasons(dense, knobs("static_tiles=true split_k=5"), h200()),
             "split-K: 4 stages along K are too few for 5 blocks");
  expect_one(columns.infeasible_reasons(dense, knobs("static_tiles=true least_tokens=16"), h200()),
             "static tiles: all tiles have block_tokens columns: leave out least_tokens, which is 16");
  expect_one(columns.infeasible_reasons(grouped_problem, knobs("static_tiles=true"), h200()),
             "static tiles: only dense rows are known");
}

/// A cluster that divides K has one tile, of groups too.
TEST(GroupedStrategies, GroupsDivideK) {
  const Strategy<ProductProblem>& columns = strategy("columns");
  const auto reasons = [&](const char* more) {
    const std::string tile = "block_tokens=16 stages=4 ";
    return columns.infeasible_reasons(in_16_bits(), Knobs::parse(tile + more), h200());
  };
  EXPECT_EQ(reasons("split_k=8"), nothing);
  expect_one(reasons("split_k=2 least_tokens=16"),
             "split-K: all tiles have block_tokens columns: leave out least_tokens, which is 16");
  expect_one(reasons("split_k=2 by_turns=true"),
             "split-K: a block has one tile, and its 2 consumer warpgroups share it: leave out by_turns");
  GroupedProblem of_short_k = in_16_bits();
  of_short_k.k = 192;
  expect_one(columns.infeasible_reasons(of_short_k, Knobs::parse("block_tokens=16 split_k=4"), h200()),
             "split-K: 3 stages along K are too few for 4 blocks");
}

/// Two accumulators of each matrix: of gate and up those of 128 tokens, of one matrix those of 256.
TEST(GroupedStrategies, SumsOfSixteenBitProductsFitIntoTensorMemory) {
  const Strategy<ProductProblem>& strategy = grouped::strategy("tcgen05_plain");
  GroupedProblem one = in_16_bits();
  GroupedProblem two = one;
  two.activation = Activation{};
  EXPECT_EQ(strategy.infeasible_reasons(two, Knobs::parse("block_tokens=128 stages=5"), b200()), nothing);
  expect_one(strategy.infeasible_reasons(two, Knobs::parse("block_tokens=128 stages=6"), b200()), "shared memory: ");
  expect_one(strategy.infeasible_reasons(two, Knobs::parse("block_tokens=160 stages=4"), b200()),
             "tensor memory: 640 columns");
  EXPECT_EQ(strategy.infeasible_reasons(one, Knobs::parse("block_tokens=256 stages=4"), b200()), nothing);
  expect_one(strategy.infeasible_reasons(one, Knobs::parse("block_tokens=256 stages=4"), h200()),
             "strategy tcgen05_plain needs fp16 with fp16, bf16 with bf16, or fp8_tensor or fp8_row with either, and a "
             "Blackwell GPU");
  EXPECT_EQ(strategy.infeasible_reasons(two, Knobs::parse("block_tokens=32 stages=5 split_k=2"), b200()), nothing);
  expect_one(strategy.infeasible_reasons(two, Knobs::parse("block_tokens=64 stages=4 split_k=2"), b200()),
             "split-K: 64 tokens are over the 32");
  two.k = 64;
  expect_one(strategy.infeasible_reasons(two, Knobs::parse("block_tokens=32 stages=5 split_k=2"), b200()),
             "split-K: k = 64 is 1 stage of 64");
  one.a = Format::fp16;
  EXPECT_TRUE(strategy.candidates(one, {}, b200()).empty());
  EXPECT_FALSE(strategy.candidates(two, {}, b200()).empty());
  for (const Knobs& knobs : strategy.candidates(two, {}, b200())) {
    EXPECT_LE(std::stoi(*knobs.find("block_tokens")), 128) << knobs.text();
  }
}

/// FP8 whose scales multiply finished sums, tokens and weights each in their own way; and on Blackwell alone.
TEST(GroupedStrategies, PlainOperandsOfBlackwell) {
  const Strategy<ProductProblem>& strategy = grouped::strategy("tcgen05_plain");
  GroupedProblem problem = in_16_bits();
  for (const Format tokens : {Format::fp8_tensor, Format::fp8_row}) {
    for (const Format weights : {Format::fp8_tensor, Format::fp8_row}) {
      problem.a = tokens;
      problem.b = weights;
      EXPECT_EQ(strategy.unsupported_reason(problem, b200()), std::nullopt);
      EXPECT_NE(strategy.unsupported_reason(problem, h200()), std::nullopt);
      EXPECT_FALSE(strategy.candidates(problem, {}, b200()).empty());
    }
  }
  problem.a = Format::bf16;
  EXPECT_NE(strategy.unsupported_reason(problem, b200()), std::nullopt);
  problem.a = Format::fp8_block;
  problem.b = Format::fp8_block;
  EXPECT_NE(strategy.unsupported_reason(problem, b200()), std::nullopt);
  problem.a = Format::fp16;
  problem.b = Format::fp16;
  EXPECT_EQ(strategy.unsupported_reason(problem, b200()), std::nullopt);
}

/// Hopper takes every kind of scale with every other; its candidates are other tiles where sums are promoted.
TEST(GroupedStrategies, FpEightOfHopper) {
  constexpr std::array formats{Format::fp8_tensor, Format::fp8_row, Format::fp8_block};
  for (const char* const name : {"columns", "rows"}) {
    const Strategy<ProductProblem>& strategy = grouped::strategy(name);
    GroupedProblem problem = in_16_bits();
    for (const Format tokens : formats) {
      for (const Format weights : formats) {
        problem.a = tokens;
        problem.b = weights;
        EXPECT_EQ(strategy.unsupported_reason(problem, h200()), std::nullopt);
        EXPECT_NE(strategy.unsupported_reason(problem, b200()), std::nullopt);
        const std::vector<Knobs> exact = strategy.candidates(problem, {}, h200());
        const std::vector<Knobs> fast = strategy.candidates(problem, {{"numerics", "fast"}}, h200());
        EXPECT_FALSE(exact.empty());
        EXPECT_EQ(fast.empty(), tokens == Format::fp8_block || weights == Format::fp8_block);
        for (const Knobs& knobs : fast) {
          EXPECT_EQ(std::find(exact.begin(), exact.end(), knobs), exact.end());
        }
      }
    }
    problem.a = Format::bf16;
    EXPECT_NE(strategy.unsupported_reason(problem, h200()), std::nullopt);
    expect_one({*strategy.unsupported_reason(problem, h200())},
               std::string("strategy ") + name + " takes fp16 with fp16 or bf16 with bf16 on a Hopper GPU, not bf16");
  }
}

TEST(GroupedStrategies, SumsOfFpEightArePromotedEveryBlockOfScales) {
  GroupedProblem problem = in_16_bits();
  problem.a = Format::fp8_block;
  problem.b = Format::fp8_block;
  const auto infeasible_reasons = [&](const std::string& knobs) {
    return strategy("columns").infeasible_reasons(problem, Knobs::parse("block_tokens=16 stages=2 " + knobs), h200());
  };
  EXPECT_EQ(infeasible_reasons("block_k=64"), nothing);
  EXPECT_EQ(infeasible_reasons("block_k=128"), nothing);
  expect_one(infeasible_reasons("block_k=256"), "tile: 256 of FP8 along K a stage: use 64 or 128");
  expect_one(infeasible_reasons("block_k=32"), "tile: 32 of FP8");
  expect_one(infeasible_reasons("block_k=128 numerics=fast"),
             "fast: scales of blocks multiply the sums of every 128 along K");
  problem.a = Format::fp8_row;
  problem.b = Format::fp8_tensor;
  EXPECT_EQ(infeasible_reasons("block_k=256 numerics=fast"), nothing);
  expect_one(infeasible_reasons("block_k=192 numerics=fast"),
             "tile: 192 of FP8 along K a stage: use 64 or a multiple of 128");
  EXPECT_EQ(strategy("columns")
                .infeasible_reasons(problem, Knobs::parse("block_tokens=96 block_k=128 stages=2"), h200())
                .size(),
            1U);  // without a hand-over
  const Knobs wide = Knobs::parse("block_tokens=128 block_k=128 stages=2 loader_registers=40 math_registers=232");
  expect_one(strategy("columns").infeasible_reasons(problem, wide, h200()),
             "registers: a consumer thread needs about 296");
  expect_one(
      strategy("columns").infeasible_reasons(in_16_bits(), Knobs::parse("numerics=fast block_tokens=16"), h200()),
      "fast: sums of 16-bit operands are long enough");
}

TEST(GroupedStrategies, TheDirectoryHoldsSoManyExpertsAndNoMore) {
  const Knobs small = Knobs::parse("math_warpgroups=1 block_tokens=16 stages=2");
  GroupedProblem problem = in_16_bits();
  problem.experts = 1024;
  EXPECT_EQ(strategy("columns").infeasible_reasons(problem, small, h200()), nothing);
  problem.experts = 1025;
  expect_one(strategy("columns").infeasible_reasons(problem, small, h200()),
             "directory: 1025 experts are over the limit of 1024");
}

// 2²¹ tiles of 128 outputs in each row tile; of two groups each may end in the middle of one.
// Where clusters split K a tile is for all blocks of one.
TEST(GroupedStrategies, LaunchWholeClustersForASingleTile) {
  void* const somewhere = reinterpret_cast<void*>(std::uintptr_t{256});
  for (const auto* of_a_gpu : strategies_of(Product::grouped, DeviceKind::cuda)) {
    for (const auto& [sampled, knobs] : of_a_gpu->samples()) {
      ProductProblem problem = sampled;
      if (problem.layout != ProductRows::contiguous) {
        continue;
      }
      problem.experts = problem.rows = problem.n = 1;
      const DeviceSpec& device = of_a_gpu->unsupported_reason(problem, h200()) ? b200() : h200();
      const PlannedCall call = of_a_gpu->plan(problem, knobs, device);
      const auto tensor = [&](Format format, std::initializer_list<std::int64_t> shape) {
        Tensor made = Tensor::contiguous(somewhere, format, shape);
        made.scales.data = somewhere;
        return made;
      };
      std::array<Tensor, tensor_count> tensors{};
      tensors[tokens_index] = tensor(problem.a, {1, problem.k});
      tensors[gate_index] = tensor(problem.b, {1, 1, problem.k});
      tensors[up_index] = problem.activation ? tensors[gate_index] : Tensor{};
      tensors[output_index] = tensor(problem.out, {1, 1});
      tensors[groups_index] = tensor(Format::int32, {2});
      const auto& launch = std::get<KernelLaunch>(call.steps.back());
      LaunchArguments arguments;
      ASSERT_TRUE(launch.bind({tensors, somewhere, somewhere}, arguments)) << knobs.text();
      EXPECT_EQ(arguments.grid.x, launch.cluster.x) << of_a_gpu->name() << " " << knobs.text();
    }
  }
}

TEST(GroupedStrategies, TilesAreCountedInThirtyTwoBits) {
  const Knobs small = Knobs::parse("math_warpgroups=1 block_tokens=8 stages=2");
  GroupedProblem problem = in_16_bits();
  problem.experts = 2;
  problem.n = std::int64_t{128} << 21;
  problem.rows = 8 * 1022 + 1;
  EXPECT_EQ(strategy("columns").infeasible_reasons(problem, small, h200()), nothing);
  problem.rows = 8 * 1022 + 2;  // two groups may have a tile of one row each
  expect_one(strategy("columns").infeasible_reasons(problem, small, h200()),
             "tiles: up to 2147483648 of 8 rows and 128 outputs");
}

TEST(GroupedStrategies, NeedNoMoreSharedMemoryThanABlockMayHave) {
  const Knobs tile = Knobs::parse("math_warpgroups=2 block_tokens=64 stages=4");
  const GroupedProblem problem = in_16_bits();
  DeviceSpec device = h200();
  constexpr gemm::wgmma::Config config{.math_warpgroups = 2, .block_tokens = 64, .stages = 4};
  device.shared_bytes_per_block = pipeline::grouped_shared_bytes(gemm::wgmma::shape_of(config), 8);
  EXPECT_EQ(strategy("columns").infeasible_reasons(problem, tile, device), nothing);
  device.shared_bytes_per_block -= 1;
  expect_one(strategy("columns").infeasible_reasons(problem, tile, device), "shared memory: ");
}

// 384 threads have three times 168 registers.
TEST(GroupedStrategies, HandOverNoMoreRegistersThanThereAre) {
  const std::string tile = "math_warpgroups=2 block_tokens=128 stages=2 math_registers=240 loader_registers=";
  EXPECT_EQ(strategy("columns").infeasible_reasons(in_16_bits(), Knobs::parse(tile + "24"), h200()), nothing);
  expect_one(strategy("columns").infeasible_reasons(in_16_bits(), Knobs::parse(tile + "40"), h200()), "setmaxnreg: ");
}

TEST(GroupedStrategies, SlotsOfThePackedRingDivideWhatWeightsArePaddedTo) {
  const std::string fast = "numerics=fast block_tokens=16 stages=2 overlap=none blocks_per_slot=";
  GroupedProblem problem = in_nvfp4();
  problem.k = 528;
  EXPECT_EQ(strategy("packed").infeasible_reasons(problem, Knobs::parse(fast + "2"), h200()), nothing);
  expect_one(strategy("packed").infeasible_reasons(problem, Knobs::parse(fast + "4"), h200()),
             "tile: stages of 512 along K end behind K = 528");
  const Knobs three = Knobs::parse("block_tokens=16 stages=2 overlap=none blocks_per_slot=3");
  expect_one(strategy("packed").infeasible_reasons(in_nvfp4(), three, h200()),
             "tile: stages of 192 along K end behind K = 512");
  problem.k = 2880;
  EXPECT_EQ(strategy("packed").infeasible_reasons(problem, three, h200()), nothing);
  const ProductProblem dense(DualGemmProblem{.m = 16, .n = 256, .k = 2880, .a = Format::fp16, .b = Format::nvfp4});
  expect_one(strategy("packed").infeasible_reasons(dense, three, h200()),
             "tile: 192 along K a stage do not divide the 256 to which weights are padded");
}

TEST(GroupedStrategies, TokensOfSixteenBitsInSlotsAreNotQuantized) {
  GroupedProblem problem = in_nvfp4();
  problem.layout = RowLayout::slots;
  const Knobs fast = Knobs::parse("numerics=fast block_tokens=16 stages=2 overlap=none blocks_per_slot=2");
  expect_one(strategy("packed").infeasible_reasons(problem, fast, h200()),
             "fast: masked tokens of fp16 are not quantized");
  problem.a = Format::nvfp4;
  EXPECT_EQ(strategy("packed").infeasible_reasons(problem, fast, h200()), nothing);
}

TEST(GroupedStrategies, EveryPackedLayoutHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const char* const numerics : {"numerics=exact", "numerics=fast"}) {
    for (const bool is_dual : {false, true}) {
      GroupedProblem problem = in_nvfp4();
      problem.activation = is_dual ? std::optional<Activation>(Activation{}) : std::nullopt;
      const Knobs knobs = Knobs::parse(std::string(numerics) + " block_tokens=16 stages=2 overlap=none");
      names.insert(strategy("packed").plan(problem, knobs, h200()).packed_layout);
    }
  }
  EXPECT_EQ(names.size(), 4U);
}

}  // namespace
}  // namespace thresher::strategies::gemm::grouped
