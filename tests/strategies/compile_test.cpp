// Every program compiles for Hopper, on any machine that has NVRTC.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <tuple>
#include <vector>

#include "runtime/nvrtc.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/device_program.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/reference/program.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/wgmma/fused/kernel.hpp"
#include "strategies/gemm/wgmma/fused/tiles.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"
#include "strategies/gemm/wgmma/tiles.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/tiles.hpp"
#include "strategies/pause_program.hpp"
#include "strategies/word_sum/program.hpp"

namespace thresher::strategies {
namespace {

runtime::Cubin compile(const DeviceProgram& program) {
  const std::span<const EmbeddedFile> headers = device_sources();
  return runtime::compile({.title = program.title,
                           .text = program.text,
                           .headers = {headers.begin(), headers.end()},
                           .kernels = program.kernels,
                           .options = program.options});
}

/// Each kernel alone: many in one program take the compiler a tenth to a fifth longer.
void expect_clean(const DeviceProgram& program) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  ASSERT_FALSE(program.kernels.empty());
  for (const std::string& expression : program.kernels) {
    DeviceProgram alone = program;
    alone.kernels = {expression};
    const runtime::Cubin cubin = compile(alone);
    ASSERT_EQ(cubin.kernels.size(), 1U) << expression;
    const runtime::ResourceReport& resources = cubin.kernels.front().resources;
    EXPECT_EQ(resources.spill_store_bytes, 0) << expression;
    EXPECT_EQ(resources.stack_bytes, 0) << expression;
    EXPECT_GT(resources.registers, 0) << expression;
    EXPECT_EQ(cubin.log.find("warning"), std::string::npos) << cubin.log;
    EXPECT_EQ(cubin.log.find("Potential Performance Loss"), std::string::npos) << cubin.log;
  }
}

TEST(TwoPassKernels, CompileForHopperWithoutSpills) {
  const PlannedCall call =
      gemm::two_pass_strategy().plan(DualGemmProblem{.m = 128, .n = 512, .k = 512}, {}, device_spec("H200"));
  expect_clean(std::get<KernelLaunch>(call.steps.back()).program);
}

/// Machine code of a matrix kernel that spills, or whose matrix instructions the compiler serialised, is useless.
TEST(DualGemmKernel, EveryKnobCompilesForHopperWithoutSpills) {
  using namespace gemm::fused;
  DeviceProgram all = program(Config{});
  all.kernels.clear();
  for (const Config& config : {
           default_config_list.front(),
           Config{
               .order = Order::sequential, .activation = gemm::ActivationCode::gelu_tanh, .stages = 1, .multicast = 2},
           Config{.order = Order::pingpong,
                  .output = gemm::Number::fp32,
                  .activation = gemm::ActivationCode::swiglu_clamped,
                  .persistent = true,
                  .loader_registers = 40,
                  .math_registers = 232},
           Config{.warpgroup_tiles = 2,
                  .block_outputs = 96,
                  .split_k = 2,
                  .epilogue = Epilogue::tma,
                  .loader_registers = 24,
                  .math_registers = 240,
                  .profiled = true},
           Config{.block_outputs = 64, .block_k = 128, .stages = 3, .raster = Raster::columns_first},
       }) {
    all.kernels.push_back(kernel_expression(config));
  }
  expect_clean(all);
}

/// A profile is of the kernel that a user runs: with timestamps, or without a part, it must not spill either.
TEST(ProfiledKernels, CompileForHopperWithoutSpills) {
  using pipeline::Ablation;
  DeviceProgram all = gemm::fused::program(gemm::fused::Config{});
  all.kernels.clear();
  DeviceProgram packed = gemm::wgmma_dequant::program(gemm::wgmma_dequant::Config{});
  packed.kernels.clear();
  for (const Ablation ablation : {Ablation::none, Ablation::no_epilogue, Ablation::epilogue_twice, Ablation::loads_only,
                                  Ablation::products_only}) {
    const bool profiled = ablation == Ablation::none;
    gemm::fused::Config config = gemm::fused::default_config_list.front();
    config.profiled = profiled;
    config.ablation = ablation;
    all.kernels.push_back(gemm::fused::kernel_expression(config));
    gemm::wgmma_dequant::Config choice = gemm::wgmma_dequant::prefill(gemm::Numerics::exact, 2, 128, 2);
    choice.profiled = profiled;
    choice.ablation = ablation;
    packed.kernels.push_back(gemm::wgmma_dequant::kernel_expression(choice));
  }
  expect_clean(all);
  expect_clean(packed);
}

/// These as one program; `program` and `kernel_expression` are those of their strategy.
template <class Configs>
DeviceProgram one_program(const Configs& configs) {
  DeviceProgram all = program(configs.front());
  all.kernels.clear();
  for (const auto& config : configs) {
    all.kernels.push_back(kernel_expression(config));
  }
  return all;
}

/// A configuration in every tile, of so many matrices each.
template <class Config, class Tiles>
std::vector<Config> in_tiles(Config config, const Tiles& tiles, std::initializer_list<int> matrices) {
  std::vector<Config> configs;
  for (const int count : matrices) {
    config.matrices = count;
    for (const auto& tile : tiles) {
      configs.push_back(with_tile(config, tile));
    }
  }
  return configs;
}

/// A width of columns and a step between two is all that a kernel's code has of either, and rows of a tile likewise.
/// The tiles that are used, below, show what wide sums leave of the registers.
gemm::wgmma::Config narrow(gemm::wgmma::Config config) {
  if (config.tokens_are_rows) {
    config.block_tokens = gemm::wgmma::sum_rows * gemm::wgmma::tile_warpgroups(config);
    return config;
  }
  constexpr int stepped_from = 64;
  if (config.block_tokens <= stepped_from) {
    config.block_tokens = std::min(config.block_tokens, 16);
    return config;
  }
  config.least_tokens = stepped_from;
  config.block_tokens = stepped_from + (config.token_step == 0 ? stepped_from : config.token_step);
  return config;
}

template <class Configs>
auto narrow_all(const Configs& configs) {
  std::vector<typename Configs::value_type> narrowed;
  std::transform(configs.begin(), configs.end(), std::back_inserter(narrowed),
                 [](const auto& config) { return narrow(config); });
  return narrowed;
}

/// What is built into the library was compiled with it; tests/ops/built_in_cubins_test.cpp looks at that.
TEST(GroupedKernels, EverySixteenBitKnobCompilesForHopperWithoutSpills) {
  expect_clean(gemm::gather_program());
  for (const Format values : {Format::fp32, Format::fp16, Format::bf16}) {
    expect_clean(gemm::quantize_rows_program(values));
  }
  expect_clean(one_program(narrow_all(gemm::wgmma::columns::small_config_list)));
}

/// Sums of 192 columns leave a thread 40 registers. Gate and up stand for one matrix, which has less to do at the end.
TEST(GroupedKernels, TheLargestTilesCompileForHopperWithoutSpills) {
  using namespace gemm::wgmma;
  using namespace gemm::wgmma::columns;
  std::vector<Config> all =
      in_tiles(Config{.operand = gemm::Number::bf16, .output = gemm::Number::bf16}, tile_shapes, {2});
  std::erase_if(all, [](const Config& config) { return config.block_tokens != 192; });
  expect_clean(one_program(all));
}

/// Sums that are promoted are twice the registers, and scales of blocks come with them.
/// Gate and up stand for one matrix here, too.
TEST(GroupedKernels, EveryPromotedTileCompilesForHopperWithoutSpills) {
  using namespace gemm::wgmma;
  using namespace gemm::wgmma::columns;
  const Config of_blocks{
      .operand = gemm::Number::e4m3, .token_scaling = gemm::Scaling::block, .weight_scaling = gemm::Scaling::block};
  std::vector<Config> all = in_tiles(of_blocks, promoted_tile_shapes, {2});
  for (Config& config : all) {
    if (config.block_tokens == 96) {  // as much as there can be beside 192 sums
      config.bias = true;
      config.row_weights = true;
      config.gathered = true;
      config.output = gemm::Number::fp32;
    }
  }
  expect_clean(one_program(all));
}

gemm::wgmma::Config of_rows() { return {.tokens_are_rows = true}; }

/// Of one matrix the tile of the most rows, which takes the compiler longest: its sums are as many and its outputs
/// more.
TEST(GroupedKernels, EveryTileOfManyRowsCompilesForHopperWithoutSpills) {
  using namespace gemm::wgmma;
  using namespace gemm::wgmma::rows;
  expect_clean(one_program(in_tiles(of_rows(), tile_shapes, {2})));
  expect_clean(one_program(in_tiles(of_rows(), std::array{tile_shapes.back()}, {1})));
  expect_clean(one_program(narrow_all(small_config_list)));
}

TEST(GroupedKernels, EveryPromotedTileOfManyRowsCompilesForHopperWithoutSpills) {
  using namespace gemm::wgmma;
  using namespace gemm::wgmma::rows;
  Config of_blocks = of_rows();
  of_blocks.operand = gemm::Number::e4m3;
  of_blocks.token_scaling = of_blocks.weight_scaling = gemm::Scaling::block;
  std::vector<Config> all = in_tiles(of_blocks, promoted_tile_shapes, {2});
  Config in_blocks = of_blocks;  // as much as there can be beside 192 floats
  in_blocks.output = gemm::Number::e4m3;
  in_blocks.output_scaling = gemm::Scaling::block;
  in_blocks.activation = gemm::ActivationCode::swiglu_clamped;
  in_blocks.bias = true;
  in_blocks.row_weights = true;
  in_blocks.gathered = true;
  for (const int matrices : {2, 1}) {
    in_blocks.matrices = matrices;
    const std::vector<Config> some = in_tiles(in_blocks, gemm::wgmma::shapes_for(in_blocks), {matrices});
    all.insert(all.end(), some.begin(), some.end());
  }
  expect_clean(one_program(all));
}

/// The activation that takes the most registers, beside the most sums; and that of one matrix beside the most outputs.
TEST(GroupedKernels, SituAndRelu2CompileForHopperWithoutSpills) {
  using gemm::ActivationCode;
  const auto with = [](auto config, int matrices) {
    config.matrices = matrices;
    config.activation = matrices == 2 ? ActivationCode::situ : ActivationCode::relu2;
    return config;
  };
  std::vector<gemm::wgmma::Config> plain;
  std::vector<gemm::wgmma_dequant::Config> packed;
  for (const int matrices : {2, 1}) {
    for (const auto& tile : {gemm::wgmma::columns::tile_shapes[0], gemm::wgmma::columns::tile_shapes[5]}) {
      plain.push_back(with(with_tile(gemm::wgmma::Config{}, tile), matrices));
    }
    for (const gemm::Numerics numerics : {gemm::Numerics::exact, gemm::Numerics::fast}) {
      packed.push_back(with(gemm::wgmma_dequant::grouped_prefill(numerics, matrices, 3, 128), matrices));
    }
  }
  expect_clean(one_program(plain));
  expect_clean(one_program(in_tiles(with(of_rows(), 2), std::array{gemm::wgmma::rows::tile_shapes.back()}, {2})));
  expect_clean(one_program(packed));
}

/// The planner gives the widest tiles more registers for situ.
TEST(DualGemmKernel, SituCompilesForHopperInTheWidestTilesWithoutSpills) {
  const DualGemmProblem problem{.m = 4096,
                                .n = 14336,
                                .k = 4096,
                                .a = Format::bf16,
                                .b = Format::bf16,
                                .out = Format::bf16,
                                .activation = usual_activation(ActivationKind::situ)};
  const auto& strategy = gemm::interleaved_strategy();
  const std::vector<Knobs> widest = strategy.candidates(problem, {{"block_outputs", "128"}}, device_spec("H200"));
  ASSERT_FALSE(widest.empty());
  for (const Knobs& knobs : {widest.front(), widest.back()}) {
    const PlannedCall call = strategy.plan(problem, knobs, device_spec("H200"));
    expect_clean(std::get<KernelLaunch>(call.steps.back()).program);
  }
}

TEST(GroupedKernels, EveryPackedKnobCompilesForHopperWithoutSpills) {
  expect_clean(one_program(gemm::wgmma_dequant::small_configs));
}

/// Those of a problem's first launch.
void add_kernels(DeviceProgram& all, const Strategy<AttentionProblem>& strategy, const AttentionProblem& problem,
                 const Knobs& knobs = {}) {
  const PlannedCall call = strategy.plan(problem, knobs, device_spec("H200"));
  const DeviceProgram& program = std::get<KernelLaunch>(call.steps.front()).program;
  all.text = program.text;
  all.title = program.title;
  all.kernels.insert(all.kernels.end(), program.kernels.begin(), program.kernels.end());
}

/// The number that the emulator starts a thread with is the compiler's.
/// Of each head dimension the tile with the most rows, and what has the most warps.
TEST(AttentionOverPages, EveryChoiceCompilesForHopperWithoutSpills) {
  const auto& strategy = attention::stream_k_strategy();
  struct Choice {
    std::int64_t head_dim, queries, page;
    bool is_fp8;
    const char* cluster = "1";
  };
  DeviceProgram all;
  for (const Choice& choice : {Choice{64, 8, 16, false},
                               {128, 4, 16, false},
                               {128, 4, 1, false},
                               {128, 1, 1, false},
                               {128, 4, 16, true},
                               {64, 4, 16, true},
                               {256, 1, 16, false},
                               {256, 1, 16, true},
                               {64, 8, 16, false, "2"},
                               {128, 4, 16, true, "16"},
                               {256, 1, 16, false, "8"}}) {
    AttentionProblem problem{.heads = 8,
                             .kv_heads = 2,
                             .queries = choice.queries,
                             .keys = 32768,
                             .head_dim = choice.head_dim,
                             .format = Format::bf16,
                             .causal = true,
                             .variable_length = true};
    problem.page_size = choice.page;
    problem.pages = 4096;
    if (choice.is_fp8) {
      problem.kv_format = Format::fp8_e4m3;
    }
    add_kernels(all, strategy, problem, {{"cluster", choice.cluster}});
  }
  expect_clean(all);
}

/// The widest sums beside scores, and pages, of which each head dimension has its own copies. Without pages there is
/// less to hold: of equal and of unequal widths one.
TEST(LongSequences, EveryWidthCompilesForHopperWithoutSpills) {
  DeviceProgram all;
  const auto add = [&](const AttentionProblem& problem) { add_kernels(all, attention::pipelined_strategy(), problem); };
  for (const auto& [head_dim, value_dim, also_without_pages] :
       {std::tuple{256, 256, true}, {192, 128, true}, {192, 192, false}, {256, 128, false}, {64, 64, false}}) {
    AttentionProblem problem{.queries = 4096,
                             .keys = 4096,
                             .head_dim = head_dim,
                             .value_dim = value_dim,
                             .format = Format::bf16,
                             .causal = true};
    if (also_without_pages) {
      add(problem);
    }
    problem.softcap = head_dim == 256 ? 2.0F : 0.0F;
    problem.variable_length = true;
    problem.page_size = 16;
    problem.pages = 256;
    add(problem);
  }
  expect_clean(all);
}

/// Warps that widen codes or turn them round have what registers the sums leave; queries in bfloat16 ask most of them,
/// and warps that find pages.
TEST(LongSequences, EveryWidthOfCodesCompilesForHopperWithoutSpills) {
  DeviceProgram all;
  const auto add = [&](const AttentionProblem& problem) { add_kernels(all, attention::pipelined_strategy(), problem); };
  for (const auto& [head_dim, value_dim, softcap] :
       {std::tuple{64, 64, 0.0F}, {128, 128, 0.0F}, {128, 128, 2.0F}, {128, 256, 2.0F}, {256, 256, 0.0F}}) {
    AttentionProblem problem{.queries = 4096,
                             .keys = 4096,
                             .head_dim = head_dim,
                             .value_dim = value_dim,
                             .format = Format::bf16,
                             .kv_format = Format::fp8_e4m3,
                             .causal = true,
                             .softcap = softcap};
    AttentionProblem in_pages = problem;
    in_pages.variable_length = true;
    in_pages.page_size = 16;
    in_pages.pages = 256;
    add(in_pages);
    problem.q_format = in_pages.q_format = Format::fp8_e4m3;
    add(in_pages);
    add(problem);
  }
  AttentionProblem few{.queries = 32, .keys = 4096, .head_dim = 128, .format = Format::bf16};
  few.kv_format = few.q_format = Format::fp8_e4m3;
  add(few);
  expect_clean(all);
}

TEST(HandOver, TheCompilerGivesAThreadWhatTheLaunchSays) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const DualGemmProblem wide{.m = 256, .n = 256, .k = 256, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  const DualGemmProblem packed{
      .m = 256, .n = 256, .k = 256, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp16};
  const AttentionProblem attention{.heads = 1, .queries = 64, .keys = 256, .head_dim = 64};
  std::vector<PlannedCall> calls;
  for (const auto& [warpgroups, loader, math] : {std::array{1, 40, 232}, {1, 24, 160}, {2, 40, 232}, {2, 24, 96}}) {
    calls.push_back(gemm::fused::planned_call(wide, {.math_warpgroups = warpgroups,
                                                     .block_outputs = 32,
                                                     .stages = 3,
                                                     .loader_registers = loader,
                                                     .math_registers = math}));
  }
  calls.push_back(
      gemm::wgmma_dequant::planned_call(packed, gemm::wgmma_dequant::prefill(gemm::Numerics::exact, 2, 256, 1), 0));
  for (const char* warpgroups : {"1", "2", "3"}) {
    calls.push_back(attention::pipelined_strategy().plan(
        attention, {{"math_warpgroups", warpgroups}, {"queries_in_registers", "false"}}, device_spec("H200")));
    AttentionProblem codes = attention;
    codes.kv_format = Format::fp8_e4m3;
    codes.variable_length = true;
    codes.page_size = 16;
    codes.pages = 16;
    calls.push_back(attention::pipelined_strategy().plan(
        codes, {{"math_warpgroups", warpgroups}, {"queries_in_registers", "false"}}, device_spec("H200")));
  }
  for (const PlannedCall& call : calls) {
    const auto& launch = std::get<KernelLaunch>(call.steps.back());
    EXPECT_NE(launch.registers, 0U) << launch.expression;
    for (const runtime::CompiledKernel& kernel : compile(launch.program).kernels) {
      EXPECT_EQ(static_cast<std::uint32_t>(kernel.resources.registers), launch.registers) << launch.expression;
    }
  }
}

TEST(PauseKernel, CompilesForHopper) { expect_clean(pause_program()); }
TEST(WordSumKernel, CompilesForHopperWithoutSpills) { expect_clean(word_sum::program()); }
TEST(ReferenceKernel, CompilesForHopperWithoutSpills) { expect_clean(gemm::reference::program()); }

}  // namespace
}  // namespace thresher::strategies
