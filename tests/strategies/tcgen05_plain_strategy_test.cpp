// The strategy tcgen05_plain as it is planned: what does not fit, what it launches and how much work that is. No
// GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <variant>

#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tcgen05/params.hpp"

namespace thresher::strategies::gemm::tcgen05 {
namespace {

const DeviceSpec& card() { return device_spec("B200"); }
const Strategy<ProductProblem>& plain() {
  return *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "tcgen05_plain");
}
DualGemmProblem plain_problem(std::int64_t m, std::int64_t n = 4096, std::int64_t k = 7168) {
  return {.m = m, .n = n, .k = k, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
}
std::vector<std::string> infeasible_reasons_of(const std::string& knobs,
                                               const DualGemmProblem& problem = plain_problem(256),
                                               const DeviceSpec& device = card()) {
  return plain().infeasible_reasons(problem, Knobs::parse(knobs), device);
}
const KernelLaunch& product_of(const PlannedCall& call) { return std::get<KernelLaunch>(call.steps.front()); }

using Sentences = std::vector<std::string>;

// Gate and up of 256 tokens fill tensor memory.
TEST(Tcgen05PlainStrategy, NeedsNoMoreColumnsThanTensorMemoryHas) {
  EXPECT_EQ(infeasible_reasons_of("block_tokens=256 stages=4"), Sentences{});
  EXPECT_EQ(infeasible_reasons_of("block_tokens=128 stages=5 persistent=true"), Sentences{});
  EXPECT_EQ(infeasible_reasons_of("block_tokens=144 stages=4 persistent=true"),
            Sentences{"tensor memory: 576 columns (288 for the sums of a tile, twice) are over the limit of 512"});
}

TEST(Tcgen05PlainStrategy, NeedsNoMoreSharedMemoryThanABlockMayHave) {
  const Sentences found = infeasible_reasons_of("block_tokens=256 stages=5");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found.front().find("(5 stages of 49152) are over the limit of 232448 (227 KiB)"), std::string::npos);
}

TEST(Tcgen05PlainStrategy, SplitsKWhereBothPartsHaveSomethingToDo) {
  EXPECT_EQ(infeasible_reasons_of("split_k=2"), Sentences{});
  EXPECT_EQ(infeasible_reasons_of("split_k=2 block_tokens=256 stages=4"), Sentences{});
  EXPECT_EQ(infeasible_reasons_of("split_k=2", plain_problem(256, 4096, 64)),
            Sentences{"split-K: k = 64 is 1 stage of 64, too few for 2 parts"});
  EXPECT_EQ(infeasible_reasons_of("split_k=2", plain_problem(256, 4096, 72)), Sentences{});
  EXPECT_EQ(infeasible_reasons_of("split_k=2 persistent=true"),
            Sentences{"split-K: a persistent block takes whole tiles, not one of 2 parts"});
  DeviceSpec small = card();
  small.resident_clusters = {1, 0, 0};
  EXPECT_EQ(infeasible_reasons_of("split_k=2", plain_problem(256), small),
            Sentences{"cluster: 4 blocks with a multiprocessor each have no room on 148 multiprocessors"});
}

TEST(Tcgen05PlainStrategy, EveryCandidateCanBePlannedAndFitsItsKernel) {
  for (const std::int64_t m : {1, 16, 100, 256, 4096}) {
    for (const std::int64_t k : {8, 64, 72, 7168}) {
      const std::vector<Knobs> all = plain().candidates(plain_problem(m, 4096, k), {}, card());
      EXPECT_FALSE(all.empty()) << m << " " << k;
      const auto splits = [](const Knobs& knobs) { return *knobs.find("split_k") == "2"; };
      EXPECT_EQ(std::any_of(all.begin(), all.end(), splits), k > 64) << m << " " << k;
      for (const Knobs& knobs : all) {
        const PlannedCall call = plain().plan(plain_problem(m, 4096, k), knobs, card());
        EXPECT_TRUE(pipeline::fits(shape_of(knob_table(false).with({.dense = true}, knobs, "plain")))) << knobs.text();
        EXPECT_EQ(call.knobs, knobs);
      }
    }
  }
}

// The parts of a split stand beside one another: twice the blocks, half of the steps, and sums to exchange.
TEST(Tcgen05PlainStrategy, ASplitIsMoreBlocksWithLessToDo) {
  const auto work = [](const std::string& knobs) {
    return std::get<TensorKernel>(
        plain().work(plain_problem(256, 4096, 7232), Knobs::parse(knobs), card()).parts.front());
  };
  const TensorKernel whole = work("");
  const TensorKernel split = work("split_k=2");
  EXPECT_EQ(whole.tiles.front().steps, 113);
  EXPECT_EQ(split.tiles.front().steps, 57);
  EXPECT_EQ(split.tiles.front().count, whole.tiles.front().count);
  EXPECT_EQ(split.cluster, 2 * whole.cluster);
  EXPECT_EQ(whole.exchange_clocks, 0);
  EXPECT_GT(split.exchange_clocks, 0);
  EXPECT_EQ(split.useful_share, whole.useful_share);
  EXPECT_EQ(2 * split.tiles.front().epilogue.store_bytes, whole.tiles.front().epilogue.store_bytes);
}

TEST(Tcgen05PlainStrategy, LaunchesItsKernelOverAllTiles) {
  const DualGemmProblem problem = plain_problem(300, 1000, 528);
  const PlannedCall call = plain().plan(problem, Knobs::parse("block_tokens=128 split_k=2 stages=3"), card());
  EXPECT_EQ(product_of(call).cluster.x, 4U);
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  const std::vector<Tensor> tensors{Tensor::contiguous(at(0x10000), Format::bf16, {300, 528}),
                                    Tensor::contiguous(at(0x20000), Format::bf16, {1000, 528}),
                                    Tensor::contiguous(at(0x30000), Format::bf16, {1000, 528}),
                                    Tensor::contiguous(at(0x40000), Format::bf16, {300, 1000})};
  LaunchArguments arguments;
  EXPECT_TRUE(product_of(call).bind({tensors, nullptr, nullptr}, arguments));
  ASSERT_EQ(arguments.size(), sizeof(DenseParams));
  DenseParams params;
  std::memcpy(&params, arguments.data(), sizeof(DenseParams));
  EXPECT_EQ(params.token_tiles, 3U);
  EXPECT_EQ(params.output_tiles, 4U);
  EXPECT_EQ(params.k_steps, 9U);
  EXPECT_EQ(arguments.grid.x, 3U * 4U * 4U);
}

TEST(Tcgen05PlainStrategy, ExpectsTheInstructionsOfASlot) {
  const auto expected = [](const std::string& knobs) {
    return product_of(plain().plan(plain_problem(512), Knobs::parse(knobs), card())).expected;
  };
  EXPECT_EQ(expected("").matrix_kind, "UTCHMMA");
  EXPECT_EQ(expected("").tensor.products, 8);
  EXPECT_EQ(expected("block_tokens=128").tensor.loaded_bytes, 32 * 2 * 32 * 4);
  // What a block sends of its sums, and what it keeps of both.
  EXPECT_EQ(expected("block_tokens=128 split_k=2").tensor.loaded_bytes, 32 * (32 + 2 * 32) * 4);
  EXPECT_EQ(expected("block_tokens=16 split_k=2").tensor.loaded_bytes, 32 * (8 + 2 * 8) * 4);
}

// --- FP8

DualGemmProblem fp8_problem(Format a, Format b, std::int64_t k = 7168) {
  return {.m = 256, .n = 4096, .k = k, .a = a, .b = b, .out = Format::bf16};
}

TEST(Tcgen05PlainStrategy, TakesFp8WithScalesOfMatricesOrRowsInEveryPair) {
  for (const Format a : {Format::fp8_tensor, Format::fp8_row}) {
    for (const Format b : {Format::fp8_tensor, Format::fp8_row}) {
      EXPECT_EQ(infeasible_reasons_of("", fp8_problem(a, b)), Sentences{}) << name(a) << " " << name(b);
      EXPECT_FALSE(plain().candidates(fp8_problem(a, b), {}, card()).empty());
    }
  }
  const auto refused = [](Format a, Format b, const std::string& of, const std::string& device) {
    EXPECT_EQ(infeasible_reasons_of("", fp8_problem(a, b), device_spec(device)),
              Sentences{"strategy tcgen05_plain needs fp16 with fp16, bf16 with bf16, or fp8_tensor or fp8_row with "
                        "either, and a Blackwell GPU, not " +
                        of + " on " + device});
  };
  refused(Format::fp8_row, Format::fp8_block, "fp8_row with fp8_block", "B200");
  refused(Format::fp8_block, Format::fp8_tensor, "fp8_block with fp8_tensor", "B200");
  refused(Format::bf16, Format::fp8_tensor, "bf16 with fp8_tensor", "B200");
  refused(Format::fp16, Format::bf16, "fp16 with bf16", "B200");
  refused(Format::fp8_row, Format::fp8_row, "fp8_row with fp8_row", "H200");
}

// Nothing else multiplies FP8 on such a card; 16 bits the library does.
TEST(Tcgen05PlainStrategy, CompetesForFp8Alone) {
  EXPECT_EQ(plain().role(fp8_problem(Format::fp8_row, Format::fp8_tensor)), Role::competes);
  EXPECT_EQ(plain().role(plain_problem(256)), Role::by_name);
}

// A slot has 128 of FP8 along K, in as many bytes as 64 of 16 bits.
TEST(Tcgen05PlainStrategy, AnFp8ProductTakesHalfTheSlotsAndSaysSo) {
  EXPECT_EQ(infeasible_reasons_of("split_k=2", fp8_problem(Format::fp8_row, Format::fp8_row, 128)),
            Sentences{"split-K: k = 128 is 1 stage of 128, too few for 2 parts"});
  const auto kernel = [](const DualGemmProblem& problem) {
    return std::get<TensorKernel>(plain().work(problem, {}, card()).parts.front());
  };
  const TensorKernel fp8 = kernel(fp8_problem(Format::fp8_row, Format::fp8_tensor));
  const TensorKernel wide = kernel(plain_problem(256));
  EXPECT_EQ(fp8.matrix_type, MatrixType::fp8);
  EXPECT_EQ(2 * fp8.tiles.front().steps, wide.tiles.front().steps);
  EXPECT_EQ(fp8.tiles.front().l2_bytes, wide.tiles.front().l2_bytes);
  EXPECT_EQ(fp8.tiles.front().product_operations, 2 * wide.tiles.front().product_operations);
  EXPECT_LT(fp8.dram_bytes, wide.dram_bytes);
}

TEST(Tcgen05PlainStrategy, BindsTheScalesOfEachOperand) {
  const DualGemmProblem problem = fp8_problem(Format::fp8_row, Format::fp8_tensor);
  const PlannedCall call = plain().plan(problem, {}, card());
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  const auto operand = [&](std::uintptr_t address, Format format, OperandRole role, std::int64_t rows) {
    return Tensor::fp8(at(address), format, role, static_cast<const float*>(at(address + 0x1000)), rows, problem.k);
  };
  const std::vector<Tensor> tensors{operand(0x10000, Format::fp8_row, OperandRole::tokens, problem.m),
                                    operand(0x20000, Format::fp8_tensor, OperandRole::weights, problem.n),
                                    operand(0x30000, Format::fp8_tensor, OperandRole::weights, problem.n),
                                    Tensor::contiguous(at(0x40000), Format::bf16, {problem.m, problem.n})};
  LaunchArguments arguments;
  EXPECT_TRUE(product_of(call).bind({tensors, nullptr, nullptr}, arguments));
  product_of(call).bind_weights({tensors, nullptr, nullptr}, arguments);
  DenseParams params;
  ASSERT_EQ(arguments.size(), sizeof params);
  std::memcpy(&params, arguments.data(), sizeof params);
  EXPECT_EQ(params.token_scales.address, 0x11000U);
  EXPECT_EQ(params.gate_scales.address, 0x21000U);
  EXPECT_EQ(params.up_scales.address, 0x31000U);
  EXPECT_EQ(params.k_steps, 56U);
  for (const auto& map : arguments.maps()) {
    EXPECT_EQ(map.description.element, machine::ElementType::uint8);
    EXPECT_EQ(map.description.stride_bytes[1], 7168U);
    EXPECT_EQ(map.description.box[0], 128U);
  }
  EXPECT_EQ(product_of(call).expected.matrix_kind, "UTCQMMA");
  std::multiset<Access::Memory> read;
  for (const Access& access : product_of(call).accesses) {
    read.insert(access.memory);
  }
  EXPECT_EQ(read, (std::multiset<Access::Memory>{Access::Memory::tensor, Access::Memory::tensor, Access::Memory::tensor,
                                                 Access::Memory::tensor, Access::Memory::scales,
                                                 Access::Memory::global_scale, Access::Memory::global_scale}));
}

}  // namespace
}  // namespace thresher::strategies::gemm::tcgen05
