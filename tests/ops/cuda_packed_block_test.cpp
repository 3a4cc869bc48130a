// Blocks of packed weights on a GPU: the bits of what was packed there, read where they lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "ops/device_memory.hpp"
#include "runtime/stream.hpp"
#include "support/gpu.hpp"
#include "support/grouped_case.hpp"
#include "thresher/error.hpp"
#include "thresher/packed_block.hpp"

namespace thresher {
namespace {

using ops::DeviceTensor;
using test::OnGpu;

std::span<std::byte> span_of(const OnGpu& memory) { return {static_cast<std::byte*>(memory.data()), memory.bytes()}; }

/// A block on the GPU, whose bytes may have been elsewhere.
OnGpu moved(const OnGpu& block) { return OnGpu(block.download<std::uint8_t>()); }

template <class Weights>
OnGpu block_on_gpu(const Weights& weights) {
  OnGpu block(block_bytes(weights));
  to_block(weights, span_of(block));
  return block;
}

std::vector<std::byte> outputs(const PackedWeights& weights, const DualGemmProblem& problem, const Tensor& a) {
  const DualGemm gemm = plan(Device::cuda(), problem, weights);
  const OnGpu workspace(gemm.workspace_bytes());
  const DeviceTensor c(problem.out, {problem.m, problem.n}, Device::cuda());
  gemm.run({}, a, c.tensor(), workspace.data());
  runtime::synchronize({}, 0);
  return c.to_host();
}

TEST(CudaPackedBlock, WhatIsReadFromItGivesTheSameBits) {
  SKIP_WITHOUT_GPU();
  for (const Format format : {Format::bf16, Format::nvfp4}) {
    const DualGemmProblem problem{.m = 20, .n = 72, .k = 320, .a = Format::bf16, .b = format, .out = Format::fp32};
    test::DualGemmCase of = test::DualGemmCase::random(problem, {});
    const DeviceTensor a(of.a.view(), Device::cuda());
    const DeviceTensor gate(of.b1_gate.view(), Device::cuda());
    const DeviceTensor up(of.b2_up.view(), Device::cuda());
    const PackedWeights packed = pack(Device::cuda(), gate.tensor(), up.tensor());
    const std::vector<std::byte> expected = outputs(packed, problem, a.tensor());
    const OnGpu block = moved(block_on_gpu(packed));
    const PackedWeights seen = from_block(Device::cuda(), span_of(block), PackedCheck::content);
    EXPECT_EQ(outputs(seen, problem, a.tensor()), expected) << name(format);
    EXPECT_EQ(block_on_gpu(seen).download<std::uint8_t>(), block.download<std::uint8_t>()) << name(format);

    const PackedWeights on_cpu = pack(Device::cpu(), of.b1_gate.view(), of.b2_up.view());
    std::vector<std::uint8_t> host(block_bytes(on_cpu) + block_alignment);
    void* start = host.data() + (block_alignment - reinterpret_cast<std::uintptr_t>(host.data()) % block_alignment);
    to_block(on_cpu, {static_cast<std::byte*>(start), block_bytes(on_cpu)});
    const auto* first = static_cast<const std::uint8_t*>(start);
    const OnGpu from_cpu(std::vector<std::uint8_t>(first, first + block_bytes(on_cpu)));
    EXPECT_EQ(outputs(from_block(Device::cuda(), span_of(from_cpu)), problem, a.tensor()), expected)
        << name(format) << " packed on the CPU";
    if (format == Format::nvfp4) {
      std::vector<std::uint8_t> back = block.download<std::uint8_t>();
      host.assign(back.size() + block_alignment, 0);
      auto* to = host.data() + (block_alignment - reinterpret_cast<std::uintptr_t>(host.data()) % block_alignment);
      std::copy(back.begin(), back.end(), to);
      EXPECT_THROW((void)from_block(Device::cpu(), {reinterpret_cast<const std::byte*>(to), back.size()}), Error);
    }
  }
}

std::vector<std::byte> outputs(const PackedGroupedWeights& weights, const GroupedProblem& problem,
                               GroupedTensors tensors) {
  const GroupedGemm gemm = plan(Device::cuda(), problem, weights);
  const OnGpu workspace(gemm.workspace_bytes());
  const DeviceTensor c(problem.out, {problem.rows, problem.n}, Device::cuda());
  tensors.c = c.tensor();
  gemm.run({}, tensors, workspace.data());
  runtime::synchronize({}, 0);
  return c.to_host();
}

TEST(CudaPackedBlock, GroupedWeightsGiveTheSameBits) {
  SKIP_WITHOUT_GPU();
  for (const Format format : {Format::bf16, Format::nvfp4}) {
    for (const std::optional<GateUpOrder> order :
         {std::optional<GateUpOrder>{}, {GateUpOrder::up_first}, {GateUpOrder::interleaved}}) {
      for (const bool bias : {false, true}) {
        const GroupedProblem problem{.experts = 3,
                                     .rows = 24,
                                     .n = 64,
                                     .k = 128,
                                     .a = Format::bf16,
                                     .b = format,
                                     .out = Format::fp32,
                                     .activation = Activation{},
                                     .bias = bias};
        test::GroupedCase of(problem, {.groups = {0, 9, 9, 24}, .order = order});
        const GroupedWeights host = of.weights();
        const GroupedTensors host_tensors = of.tensors();
        const DeviceTensor a(host_tensors.a, Device::cuda());
        const DeviceTensor offsets(host_tensors.offsets, Device::cuda());
        const auto on_gpu = [](const Tensor& tensor) {
          return tensor.rank == 0 ? nullptr : std::make_unique<DeviceTensor>(tensor, Device::cuda());
        };
        const auto b1 = on_gpu(host.b1);
        const auto b2 = on_gpu(host.b2);
        const auto bias1 = on_gpu(host.bias1);
        const auto bias2 = on_gpu(host.bias2);
        const float* up_scales = host.up_global_scale;
        const OnGpu up_global(up_scales == nullptr ? std::vector<float>(3)
                                                   : std::vector<float>(up_scales, up_scales + 3));
        const auto tensor_of = [](const auto& copy) { return copy == nullptr ? Tensor{} : copy->tensor(); };
        const GroupedWeights weights{
            .b1 = tensor_of(b1),
            .b2 = tensor_of(b2),
            .order = order,
            .up_global_scale = up_scales == nullptr ? nullptr : static_cast<const float*>(up_global.data()),
            .bias1 = tensor_of(bias1),
            .bias2 = tensor_of(bias2)};
        const GroupedTensors tensors{.a = a.tensor(), .offsets = offsets.tensor()};
        const PackedGroupedWeights packed = pack(Device::cuda(), weights);
        const std::vector<std::byte> expected = outputs(packed, problem, tensors);
        const OnGpu block = moved(block_on_gpu(packed));
        const PackedGroupedWeights seen = grouped_from_block(Device::cuda(), span_of(block), PackedCheck::content);
        EXPECT_EQ(outputs(seen, problem, tensors), expected) << name(format) << (bias ? " with biases" : "");
        EXPECT_EQ(block_on_gpu(seen).download<std::uint8_t>(), block.download<std::uint8_t>()) << name(format);
      }
    }
  }
}

}  // namespace
}  // namespace thresher
