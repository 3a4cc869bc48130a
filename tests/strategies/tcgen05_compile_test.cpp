// What multiplies on tcgen05 compiles for the family of compute capability 10, whose machine code is what its cards are
// given, on any machine that has NVRTC. For one card of it alone some of each kind do, too.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "runtime/nvrtc.hpp"
#include "strategies/device_program.hpp"

namespace thresher::strategies::gemm {
namespace {

runtime::Cubin compile(const std::string& header, const std::vector<std::string>& kernels, const char* arch) {
  const std::span<const EmbeddedFile> headers = device_sources();
  return runtime::compile({.title = header,
                           .text = "#include \"strategies/gemm/tcgen05/device/" + header +
                                   ".hpp\"\nusing namespace thresher::strategies::gemm;\n"
                                   "using namespace thresher::strategies::gemm::tcgen05;\n"
                                   "using namespace thresher::strategies::gemm::tcgen05::block_scaled;\n",
                           .headers = {headers.begin(), headers.end()},
                           .kernels = kernels,
                           .options = {},
                           .arch = arch});
}

/// Those of `header` in the folder device/ of the strategies, without spills and warnings; says how many registers each
/// takes.
void expect_clean(const std::string& header, const std::vector<std::string>& kernels,
                  const std::vector<const char*>& archs = {"sm_100f"}) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  for (const char* arch : archs) {
    const runtime::Cubin cubin = compile(header, kernels, arch);
    ASSERT_EQ(cubin.kernels.size(), kernels.size());
    for (const runtime::CompiledKernel& kernel : cubin.kernels) {
      EXPECT_EQ(kernel.resources.spill_store_bytes, 0) << kernel.expression;
      EXPECT_EQ(kernel.resources.stack_bytes, 0) << kernel.expression;
      std::cout << arch << " " << kernel.expression << ": " << kernel.resources.registers << " registers\n";
    }
    EXPECT_EQ(cubin.log.find("warning"), std::string::npos) << cubin.log;
  }
}

TEST(Tcgen05Compile, EveryWayToShareAndToFinish) {
  expect_clean(
      "block_scaled",
      {
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 16, "
          ".stages = 10}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 128, "
          ".stages = 6}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 16, "
          ".stages = 10}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 128, "
          ".stages = 8}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 256, "
          ".stages = 5}>",
          "kernel<Config{.nvfp4 = true, .unsigned_scales = true, .dense = true, .output = Number::fp16, .blocks = 2, "
          ".block_tokens = 128, .stages = 8}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 128, "
          ".stages = 7, "
          ".persistent = true}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 80, "
          ".stages = 6, "
          ".persistent = true}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 64, "
          ".stages = 8, "
          ".split_k = 2}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 128, "
          ".stages = 8, "
          ".split_k = 2}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 256, "
          ".stages = 5, "
          ".split_k = 2}>",
      });
  expect_clean("block_scaled",
               {"kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 64, "
                ".stages = 8, "
                ".split_k = 2}>",
                "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 128, "
                ".stages = 7, "
                ".persistent = true}>"},
               {"sm_103a"});
}

TEST(Tcgen05Compile, EveryOutput) {
  expect_clean("block_scaled", {
                                   "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::bf16, .activation = "
                                   "ActivationCode::gelu_tanh, .stages = 8}>",
                                   "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp32, .activation = "
                                   "ActivationCode::swiglu_clamped, .stages "
                                   "= 8}>",
                                   "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp32, .block_tokens "
                                   "= 64, .stages = 9, .split_k = 2}>",
                               });
}

/// A profile is of the kernel that a user runs: with timestamps, or without a part, it must not spill either.
TEST(Tcgen05Compile, Profiled) {
  expect_clean(
      "block_scaled",
      {
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .stages = 8, .profiled = true}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .stages = 8, .ablation = "
          "thresher::pipeline::Ablation::no_epilogue}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .stages = 8, .ablation = "
          "thresher::pipeline::Ablation::epilogue_twice}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .stages = 8, .ablation = "
          "thresher::pipeline::Ablation::loads_only}>",
          "kernel<Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .stages = 8, .ablation = "
          "thresher::pipeline::Ablation::products_only}>",
      });
}

TEST(Tcgen05Compile, PlainOperands) {
  expect_clean("plain",
               {"kernel<Config{.dense = true, .blocks = 1, .block_tokens = 128, .stages = 4}>",
                "kernel<Config{.dense = true, .blocks = 2, .block_tokens = 256, .stages = 4}>",
                "kernel<Config{.operand = Number::fp16, .dense = true, .output = Number::fp16, .stages = 5, "
                ".persistent = true}>",
                "kernel<Config{.dense = true, .blocks = 1, .block_tokens = 16, .stages = 6, .split_k = 2}>",
                "kernel<Config{.dense = true, .blocks = 2, .block_tokens = 128, .stages = 5, .split_k = 2}>",
                "kernel<Config{.dense = true, .output = Number::fp32, .blocks = 2, .block_tokens = 256, .stages = 4, "
                ".split_k = 2}>"});
}

TEST(Tcgen05Compile, Fp8Operands) {
  expect_clean("plain",
               {"kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::tensor, .weight_scaling = "
                "Scaling::tensor, .dense = true, .blocks = 2, .block_tokens = 256, .stages = 4}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = Scaling::row, "
                ".dense = true, .blocks = 2, .block_tokens = 256, .stages = 4}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = "
                "Scaling::tensor, .dense = true, .blocks = 1, .block_tokens = 128, .stages = 4}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = Scaling::row, "
                ".dense = true, .output = Number::fp32, .blocks = 1, .block_tokens = 16, .stages = 6, .split_k = 2}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = Scaling::row, "
                ".dense = true, .stages = 5, .split_k = 2}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = Scaling::row, "
                ".dense = true, .stages = 5, .persistent = true}>"});
  expect_clean("plain",
               {"kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = Scaling::row, "
                ".dense = true, .stages = 5, .persistent = true}>"},
               {"sm_103a"});
}

TEST(Tcgen05Compile, Experts) {
  expect_clean("block_scaled",
               {"kernel<Config{.nvfp4 = true, .blocks = 1, .stages = 5}>",
                "kernel<Config{.nvfp4 = true, .blocks = 2, .stages = 7}>",
                "kernel<Config{.nvfp4 = true, .output = Number::fp32, .matrices = 1, .blocks = 2, .stages = 7}>",
                "kernel<Config{.nvfp4 = true, .bias = true, .row_weights = true, .gathered = true, .blocks = 2, "
                ".block_tokens = 160, "
                ".stages = 4}>",
                "kernel<Config{.nvfp4 = true, .block_tokens = 32, .stages = 8, .split_k = 2}>"});
  expect_clean("block_scaled", {"kernel<Config{.nvfp4 = true, .blocks = 2, .stages = 7}>"}, {"sm_103a"});
  expect_clean("prepare", {"pack_experts_kernel<1>", "pack_experts_kernel<2>"});
  expect_clean("prepare", {"prepare_rows_kernel<thresher::pipeline::TileWidths{16, 128, 16}, false>",
                           "prepare_rows_kernel<thresher::pipeline::TileWidths{16, 128, 16}, true>"});
}

TEST(Tcgen05Compile, PlainExperts) {
  expect_clean("plain",
               {"kernel<Config{.blocks = 1, .block_tokens = 64, .stages = 5}>",
                "kernel<Config{.blocks = 2, .block_tokens = 128, .stages = 5}>",
                "kernel<Config{.operand = Number::fp16, .output = Number::fp32, .blocks = 2, .block_tokens = 16, "
                ".stages = 6}>",
                "kernel<Config{.matrices = 1, .blocks = 2, .block_tokens = 256, .stages = 6}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::tensor, .weight_scaling = "
                "Scaling::tensor, .stages = 5}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = Scaling::row, "
                ".bias = true, .gathered = true, .stages = 5}>",
                "kernel<Config{.operand = Number::e4m3, .token_scaling = Scaling::row, .weight_scaling = Scaling::row, "
                ".block_tokens = 32, .stages = 5, .split_k = 2}>",
                "kernel<Config{.bias = true, .row_weights = true, .block_tokens = 32, .stages = 5, .split_k = 2}>",
                "kernel<Config{.operand = Number::fp16, .output = Number::fp16, .activation = "
                "ActivationCode::swiglu_clamped, .bias = true, .row_weights = true, .gathered = true, .stages = 5}>"});
  expect_clean("plain",
               {"kernel<Config{.block_tokens = 16, .stages = 6}>", "kernel<Config{.stages = 5, .profiled = true}>"},
               {"sm_103a"});
}

TEST(Tcgen05Compile, Preparation) { expect_clean("prepare", {"pack_kernel", "prepare_tokens_kernel"}); }

}  // namespace
}  // namespace thresher::strategies::gemm
