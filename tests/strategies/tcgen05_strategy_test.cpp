// The strategy tcgen05 as it is planned: what it takes, what does not fit, what it launches and how that is bound to
// tensors. No GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/nvrtc.hpp"
#include "strategies/device_program.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tcgen05/params.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled {
namespace {

const DeviceSpec& b200() { return device_spec("B200"); }
const Strategy<ProductProblem>& strategy() {
  return *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "tcgen05");
}

DualGemmProblem problem_of(std::int64_t m, std::int64_t n = 4096, std::int64_t k = 7168) {
  return {.m = m, .n = n, .k = k, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp16};
}

std::vector<std::string> infeasible_reasons(const std::string& knobs, const DualGemmProblem& problem = problem_of(256),
                                            const DeviceSpec& device = b200()) {
  return strategy().infeasible_reasons(problem, Knobs::parse(knobs), device);
}

/// Addresses that are never followed.
void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

std::vector<Tensor> tensors_of(const DualGemmProblem& problem, ScaleLayout layout) {
  const auto operand = [&](std::int64_t rows, std::uintptr_t address) {
    Tensor tensor = Tensor::contiguous(at(address), Format::nvfp4, {rows, problem.k});
    tensor.scales.data = at(address + 0x1000);
    tensor.scales.layout = layout;
    return tensor;
  };
  return {operand(problem.m, 0x10000), operand(problem.n, 0x20000), operand(problem.n, 0x30000),
          Tensor::contiguous(at(0x40000), problem.out, {problem.m, problem.n})};
}

struct Bound {
  LaunchArguments arguments;
  DenseParams params;
};
Bound bound_by(const KernelLaunch& launch, const std::vector<Tensor>& tensors) {
  Bound bound;
  EXPECT_TRUE(launch.bind({tensors, at(0x50000), at(0x600000)}, bound.arguments));
  if (launch.bind_weights) {
    launch.bind_weights({tensors, at(0x50000), at(0x600000)}, bound.arguments);
  }
  if (bound.arguments.size() == sizeof(DenseParams)) {
    std::memcpy(&bound.params, bound.arguments.data(), sizeof(DenseParams));
  }
  return bound;
}
const machine::TensorMapDescription& map_at(const Bound& bound, std::size_t offset) {
  const auto maps = bound.arguments.maps();
  const auto found = std::find_if(maps.begin(), maps.end(), [&](const auto& map) { return map.offset == offset; });
  EXPECT_NE(found, maps.end());
  return found->description;
}
const KernelLaunch& step(const PlannedCall& call, std::size_t i) { return std::get<KernelLaunch>(call.steps.at(i)); }

TEST(Tcgen05Strategy, TakesNvfp4OnBothSidesOnBlackwellAlone) {
  EXPECT_EQ(infeasible_reasons(""), std::vector<std::string>{});
  EXPECT_EQ(infeasible_reasons("", problem_of(256), device_spec("GB300")), std::vector<std::string>{});
  EXPECT_EQ(
      infeasible_reasons("", problem_of(256), device_spec("H200")),
      std::vector<std::string>{
          "strategy tcgen05 needs nvfp4 tokens, nvfp4 weights and a Blackwell GPU, not nvfp4 with nvfp4 on H200"});
  DualGemmProblem wide = problem_of(256);
  wide.a = Format::bf16;
  EXPECT_EQ(infeasible_reasons("", wide),
            std::vector<std::string>{
                "strategy tcgen05 needs nvfp4 tokens, nvfp4 weights and a Blackwell GPU, not bf16 with nvfp4 on B200"});
  EXPECT_TRUE(strategy().candidates(wide, {}, b200()).empty());
  EXPECT_TRUE(strategy().candidates(problem_of(256), {}, device_spec("H200")).empty());
}

// 256 tokens leave 256 columns, of which each slot's scales take 48.
TEST(Tcgen05Strategy, NeedsNoMoreColumnsThanTensorMemoryHas) {
  EXPECT_EQ(infeasible_reasons("block_tokens=256 stages=5"), std::vector<std::string>{});
  const auto found = infeasible_reasons("block_tokens=256 stages=6");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0],
            "tensor memory: 544 columns (256 for sums and 48 for the scales of each of 6 stages) are over the limit of "
            "512");
  EXPECT_NE(found[1].find("shared memory: "), std::string::npos) << found[1];
  EXPECT_EQ(infeasible_reasons("block_tokens=256 stages=1 persistent=true").front(),
            "tensor memory: 560 columns (512 for sums and 48 for the scales of each of 1 stages) are over the limit of "
            "512");
}

TEST(Tcgen05Strategy, NeedsNoMoreSharedMemoryThanABlockMayHave) {
  EXPECT_EQ(infeasible_reasons("block_tokens=128 stages=8"), std::vector<std::string>{});
  const auto found = infeasible_reasons("block_tokens=128 stages=9");
  EXPECT_NE(found.back().find("(9 stages of 28672) are over the limit of 232448 (227 KiB)"), std::string::npos)
      << found.back();
}

TEST(Tcgen05Strategy, SplitsKWhereBothPartsHaveSomethingToDo) {
  EXPECT_EQ(infeasible_reasons("split_k=2"), std::vector<std::string>{});
  EXPECT_EQ(infeasible_reasons("split_k=2", problem_of(256, 4096, 256)),
            std::vector<std::string>{"split-K: k = 256 is 1 stage of 256, too few for 2 parts"});
  EXPECT_EQ(infeasible_reasons("split_k=2", problem_of(256, 4096, 272)), std::vector<std::string>{});
  EXPECT_EQ(infeasible_reasons("split_k=2 persistent=true"),
            std::vector<std::string>{"split-K: a persistent block takes whole tiles, not one of 2 parts"});
  // Sums of the other part land in shared memory, and are added a few columns at a time.
  EXPECT_EQ(infeasible_reasons("split_k=2 block_tokens=256 stages=5"), std::vector<std::string>{});
  EXPECT_EQ(infeasible_reasons("split_k=2 block_tokens=256 stages=1"), std::vector<std::string>{});
}

TEST(Tcgen05Strategy, NeedsRoomForAClusterWithAMultiprocessorEach) {
  DeviceSpec small = b200();
  small.resident_clusters = {1, 0, 0};
  EXPECT_EQ(infeasible_reasons("", problem_of(256), small), std::vector<std::string>{});
  EXPECT_EQ(
      infeasible_reasons("split_k=2", problem_of(256), small),
      std::vector<std::string>{"cluster: 4 blocks with a multiprocessor each have no room on 148 multiprocessors"});
}

TEST(Tcgen05Strategy, EveryCandidateCanBePlannedAndFitsItsKernel) {
  for (const std::int64_t m : {1, 16, 17, 100, 128, 129, 256, 300, 512, 4096}) {
    for (const std::int64_t k : {16, 256, 272, 7168}) {
      const DualGemmProblem problem = problem_of(m, 4096, k);
      const std::vector<Knobs> all = strategy().candidates(problem, {}, b200());
      EXPECT_FALSE(all.empty()) << m << " " << k;
      for (const Knobs& knobs : all) {
        const PlannedCall call = strategy().plan(problem, knobs, b200());
        EXPECT_TRUE(pipeline::fits(shape_of(knob_table(true).with({.nvfp4 = true, .dense = true}, knobs, "tcgen05"))))
            << knobs.text();
        EXPECT_EQ(call.work, strategy().work(problem, knobs, b200())) << knobs.text();
        EXPECT_EQ(call.knobs, knobs);
      }
    }
  }
}

// A knob that is asked for is kept, and the ring is as deep as it then can be.
TEST(Tcgen05Strategy, KeepsKnobsThatAreAskedForAndFitsTheRestToThem) {
  const auto kept = strategy().candidates(problem_of(512), Knobs::parse("block_tokens=256 blocks=2"), b200());
  ASSERT_FALSE(kept.empty());
  for (const Knobs& knobs : kept) {
    EXPECT_EQ(*knobs.find("block_tokens"), "256");
    EXPECT_EQ(*knobs.find("stages"), "5");
  }
  EXPECT_TRUE(strategy().candidates(problem_of(512), Knobs::parse("block_tokens=256 stages=9"), b200()).empty());
}

TEST(Tcgen05Strategy, ItsProductRunsOnTheFamilyAndItsPreparationAnywhere) {
  const PlannedCall call = strategy().plan(problem_of(256), {}, b200());
  ASSERT_EQ(call.steps.size(), 2U);
  EXPECT_EQ(step(call, 0).program.only_arch, std::nullopt);
  EXPECT_EQ(step(call, 1).program.only_arch, Arch::sm_100f);
  EXPECT_TRUE(runs_on(Arch::sm_100f, b200().arch));
  EXPECT_TRUE(runs_on(Arch::sm_100f, device_spec("GB300").arch));
  EXPECT_FALSE(runs_on(Arch::sm_100f, device_spec("H200").arch));
}

TEST(Tcgen05Strategy, LaunchesItsKernelInPairsOverAllTiles) {
  const DualGemmProblem problem = problem_of(300, 1000, 528);
  const PlannedCall call = strategy().plan(problem, Knobs::parse("block_tokens=128 split_k=2 stages=3"), b200());
  const KernelLaunch& multiply = step(call, 1);
  EXPECT_EQ(multiply.cluster.x, 4U);
  EXPECT_EQ(multiply.block.x, 192U);
  EXPECT_FALSE(multiply.persistent);
  const Bound bound = bound_by(multiply, tensors_of(problem, ScaleLayout::row_major));
  EXPECT_EQ(bound.params.token_tiles, 3U);
  EXPECT_EQ(bound.params.output_tiles, 8U);
  EXPECT_EQ(bound.params.k_steps, 3U);
  EXPECT_EQ(bound.arguments.grid.x, 3U * 8U * 4U);
  EXPECT_EQ(bound.arguments.maps().size(), 4U);
}

// Signs of scales are moved into the codes, unless the user says that there are none.
TEST(Tcgen05Strategy, ReadsTokensWhereTheyLieOnlyWhereScalesHaveNoSignsAndFit) {
  const DualGemmProblem problem = problem_of(256, 256, 512);
  const auto prepares = [&](const std::string& knobs, const std::vector<Tensor>& tensors) {
    const PlannedCall call = strategy().plan(problem, Knobs::parse(knobs), b200());
    return bound_by(step(call, 0), tensors).arguments.grid.x > 0;
  };
  const std::vector<Tensor> blocked = tensors_of(problem, ScaleLayout::blocked);
  EXPECT_TRUE(prepares("", blocked));
  EXPECT_FALSE(prepares("unsigned_scales=true", blocked));
  EXPECT_TRUE(prepares("unsigned_scales=true", tensors_of(problem, ScaleLayout::row_major)));
  EXPECT_TRUE(prepares("unsigned_scales=true block_tokens=64", blocked));
  std::vector<Tensor> apart = blocked;
  apart[tokens_index].strides[0] += 16;  // 8 bytes
  EXPECT_TRUE(prepares("unsigned_scales=true", apart));
  std::vector<Tensor> crooked = blocked;
  crooked[tokens_index].scales.data = at(0x11008);
  EXPECT_TRUE(prepares("unsigned_scales=true", crooked));
}

TEST(Tcgen05Strategy, MapsDescribeWhatTheKernelLoads) {
  const DualGemmProblem problem = problem_of(200, 100, 528);
  const PlannedCall call = strategy().plan(problem, Knobs::parse("block_tokens=160 stages=2"), b200());
  const Bound bound = bound_by(step(call, 1), tensors_of(problem, ScaleLayout::row_major));
  const auto& tokens = map_at(bound, offsetof(DenseParams, tokens));
  EXPECT_EQ(tokens.address, 0x50000U);
  EXPECT_EQ(tokens.extent[0], 272U);  // 528 codes are 264 bytes, in rows of whole 16
  EXPECT_EQ(tokens.extent[1], 200U);
  EXPECT_EQ(tokens.stride_bytes[1], 272U);
  EXPECT_EQ(tokens.box[1], 80U);  // of a pair's 160
  const auto& scales = map_at(bound, offsetof(DenseParams, token_scales));
  EXPECT_EQ(scales.address, 0x50000U + call.workspace[1].offset);
  EXPECT_EQ(scales.extent[1], 9U);  // blocks of 64 along K
  EXPECT_EQ(scales.extent[2], 4U);  // two tiles of two groups
  EXPECT_EQ(scales.box[1], 2U);
  EXPECT_EQ(scales.box[2], 2U);
  const auto& weights = map_at(bound, offsetof(DenseParams, weights));
  EXPECT_EQ(weights.extent[2], 2U * 3U);
  const auto& weight_scales = map_at(bound, offsetof(DenseParams, weight_scales));
  EXPECT_EQ(weight_scales.address, weights.address + packed_code_bytes(100, 528));
  EXPECT_EQ(weight_scales.box[1], 4U);
}

TEST(Tcgen05Strategy, PacksOnceUnderANameThatFilesKeep) {
  const DualGemmProblem problem = problem_of(16, 100, 528);
  const PlannedCall call = strategy().plan(problem, {}, b200());
  EXPECT_EQ(call.packed_layout, "nvfp4-sm100-1");
  EXPECT_EQ(call.packed_bytes(), packed_code_bytes(100, 528) + packed_scale_bytes(100, 528));
  ASSERT_NE(call.packing, nullptr);
  EXPECT_EQ(bound_by(std::get<KernelLaunch>(call.packing->steps.front()), tensors_of(problem, ScaleLayout::row_major))
                .arguments.grid.x,
            2U * 3U);
}

TEST(Tcgen05Strategy, ExpectsTheInstructionsOfASlot) {
  const auto expected = [](const std::string& knobs) {
    return step(strategy().plan(problem_of(512), Knobs::parse(knobs), b200()), 1).expected;
  };
  EXPECT_EQ(expected("block_tokens=128").matrix_kind, "UTCOMMA");
  EXPECT_EQ(expected("block_tokens=128").tensor.products, 4);
  EXPECT_EQ(expected("block_tokens=128").tensor.scale_copies, 8);
  EXPECT_EQ(expected("block_tokens=256").tensor.scale_copies, 12);
  EXPECT_EQ(expected("block_tokens=128").tensor.loaded_bytes, 32 * 64 * 4);
  EXPECT_EQ(expected("block_tokens=48").tensor.loaded_bytes, 32 * 16 * 4);
  // What a block sends of its sums, and what it keeps.
  EXPECT_EQ(expected("block_tokens=128 split_k=2").tensor.loaded_bytes, 32 * (32 + 64) * 4);
  EXPECT_EQ(expected("block_tokens=16 split_k=2").tensor.loaded_bytes, 32 * (8 + 8) * 4);
  EXPECT_EQ(expected("block_tokens=128").tensor.is_pair, true);
  EXPECT_EQ(expected("block_tokens=128 blocks=1").tensor.is_pair, false);
}

// What scripts/check_on_b200.sh compiles in: the vendor's checks make more code of the same kernel.
TEST(Tcgen05Strategy, ItsProgramCompilesWithTheVendorsChecksOfTensorMemory) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const auto code_bytes = [](const std::vector<std::string>& options) {
    const DeviceProgram program = step(strategy().plan(problem_of(256), {}, b200()), 1).program;
    const std::span<const EmbeddedFile> headers = device_sources();
    return runtime::compile({.title = program.title,
                             .text = program.text,
                             .headers = {headers.begin(), headers.end()},
                             .kernels = program.kernels,
                             .options = options,
                             .arch = std::string(name(*program.only_arch))})
        .image.size();
  };
  EXPECT_GT(code_bytes({"--ptxas-options=-g-tmem-access-check"}), code_bytes({}));
}

TEST(Tcgen05Strategy, KnobsSpellWhatTheCodeDependsOn) {
  const Config config{
      .nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 48, .persistent = true};
  EXPECT_EQ(knob_table(true).with({.nvfp4 = true, .dense = true, .output = Number::fp16},
                                  Knobs::parse(knob_table(true).knobs(config).text()), "tcgen05"),
            config);
  const std::string code = knob_table(true).spelling(config);
  EXPECT_NE(code.find(".persistent = true"), std::string::npos) << code;
  EXPECT_EQ(code.find("dependent_launch"), std::string::npos) << code;
  EXPECT_THROW((void)strategy().infeasible_reasons(problem_of(256), Knobs::parse("block_tokens=24"), b200()), Error);
  EXPECT_THROW((void)strategy().infeasible_reasons(problem_of(256), Knobs::parse("blocks=4"), b200()), Error);
  // A knob of groups.
  EXPECT_THROW((void)strategy().infeasible_reasons(problem_of(256), Knobs::parse("token_step=16"), b200()), Error);
}

TEST(Tcgen05Strategy, IsLookedIntoAsItsSkeletonSays) {
  const auto profiled = strategy().profiled(problem_of(256), {}, b200(), {.timestamps = true});
  ASSERT_TRUE(profiled.has_value());
  EXPECT_EQ(profiled->step, 1U);
  EXPECT_TRUE(profiled->shape.profiled);
  EXPECT_NE(step(profiled->call, 1).expression.find(".profiled = true"), std::string::npos);
}

}  // namespace
}  // namespace thresher::strategies::gemm::tcgen05::block_scaled
