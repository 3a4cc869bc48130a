// Times the host's cost of one run: the time per call of a burst that the GPU has not caught up with.
//
// usage: bench_cuda_run_cost
//
// It needs a GPU. The problems are dual GEMMs in bf16, the origin's third and one of few tokens. An MoE layer of four
// launches is timed with PDL for its products and without.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/moe_layer.hpp"

namespace {

using namespace thresher;

/// Small enough for the driver's queue, so that no call waits for the GPU.
constexpr int calls = 200;
constexpr int rounds = 25;

double median_us(const std::function<void(Stream)>& call) {
  const runtime::OwnedStream stream(0);
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      call(stream.get());
    }
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    samples.push_back(spent.count() / calls);
    stream.synchronize();
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// Tensors on the GPU, all bytes alike.
class Tensors {
 public:
  Tensor made(Format format, std::initializer_list<std::int64_t> shape, unsigned char byte = 0x11) {
    const Tensor like = Tensor::contiguous(nullptr, format, shape);
    runtime::DeviceBuffer& memory = buffers_.emplace_back(0, static_cast<std::size_t>(like.elements()) * 4);
    runtime::fill_async(memory.data(), byte, memory.bytes(), Stream{}, 0);
    return Tensor::contiguous(memory.data(), format, shape, memory.device());
  }

 private:
  std::vector<runtime::DeviceBuffer> buffers_;
};

void time_dual_gemm(const DualGemmProblem& problem) {
  Tensors tensors;
  const DualGemm gemm = plan(Device::cuda(), problem, tensors.made(Format::bf16, {problem.n, problem.k}),
                             tensors.made(Format::bf16, {problem.n, problem.k}));
  const Tensor tokens = tensors.made(Format::bf16, {problem.m, problem.k});
  const Tensor out = tensors.made(Format::bf16, {problem.m, problem.n});
  std::printf("run %ld x %ld x %ld: %.2f us of host time a call\n", static_cast<long>(problem.m),
              static_cast<long>(problem.n), static_cast<long>(problem.k),
              median_us([&](Stream stream) { gemm.run(stream, tokens, out); }));
}

void time_moe_layer(const char* dependent_launch) {
  const MoeProblem problem{.experts = 4, .tokens = 16, .top_k = 2, .hidden_size = 256, .intermediate_size = 256};
  MoeOptions options;
  options.gate_up.knobs.set("dependent_launch", dependent_launch);
  options.down.knobs.set("dependent_launch", dependent_launch);
  Tensors tensors;
  const MoeLayer layer = plan(
      Device::cuda(), problem,
      GroupedWeights{.b1 = tensors.made(Format::bf16, {4, 256, 256}), .b2 = tensors.made(Format::bf16, {4, 256, 256})},
      GroupedWeights{.b1 = tensors.made(Format::bf16, {4, 256, 256})}, options);
  const MoeTensors of{.x = tensors.made(Format::bf16, {16, 256}),
                      .topk_ids = tensors.made(Format::int32, {16, 2}, 0),
                      .topk_weights = tensors.made(Format::fp32, {16, 2}),
                      .out = tensors.made(Format::bf16, {16, 256})};
  const runtime::DeviceBuffer workspace(0, layer.workspace_bytes());
  std::printf("moe, dependent_launch=%s: %.2f us of host time a call\n", dependent_launch,
              median_us([&](Stream stream) { layer.run(stream, of, workspace.data()); }));
}

}  // namespace

int main() {
  if (const std::string& problem = runtime::driver_status().problem; !problem.empty()) {
    std::printf("%s\n", problem.c_str());
    return 1;
  }
  time_dual_gemm({.m = 256, .n = 3072, .k = 4096, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
  time_dual_gemm({.m = 8, .n = 1024, .k = 1024, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
  time_moe_layer("true");
  time_moe_layer("false");
}
