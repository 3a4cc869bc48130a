// Times the host's cost of one DualGemm::run: the time per call of a burst that the GPU has not caught up with.
//
// usage: bench_cuda_run_cost   (needs a GPU; bf16, the origin's third problem, and one of few tokens)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "thresher/dual_gemm.hpp"

namespace {

using namespace thresher;

/// Small enough for the driver's queue, so that no call waits for the GPU.
constexpr int calls = 200;
constexpr int rounds = 25;

double median_us_per_call(const DualGemmProblem& problem) {
  const auto buffer = [](std::int64_t elements) {
    runtime::DeviceBuffer memory(0, static_cast<std::size_t>(elements) * 2);
    runtime::fill_async(memory.data(), 0x11, memory.bytes(), Stream{}, 0);
    return memory;
  };
  const runtime::DeviceBuffer a = buffer(problem.m * problem.k);
  const runtime::DeviceBuffer gate = buffer(problem.n * problem.k);
  const runtime::DeviceBuffer up = buffer(problem.n * problem.k);
  const runtime::DeviceBuffer c = buffer(problem.m * problem.n);
  const auto matrix = [](const runtime::DeviceBuffer& memory, std::int64_t rows, std::int64_t columns) {
    return Tensor::contiguous(memory.data(), Format::bf16, {rows, columns}, memory.device());
  };
  const DualGemm gemm =
      plan(Device::cuda(), problem, matrix(gate, problem.n, problem.k), matrix(up, problem.n, problem.k));
  const Tensor tokens = matrix(a, problem.m, problem.k);
  const Tensor out = matrix(c, problem.m, problem.n);
  const runtime::OwnedStream stream(0);
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) {
      gemm.run(stream.get(), tokens, out);
    }
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    samples.push_back(spent.count() / calls);
    stream.synchronize();
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace

int main() {
  if (const std::string& problem = runtime::driver_status().problem; !problem.empty()) {
    std::printf("%s\n", problem.c_str());
    return 1;
  }
  for (const DualGemmProblem& problem :
       {DualGemmProblem{.m = 256, .n = 3072, .k = 4096, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16},
        DualGemmProblem{.m = 8, .n = 1024, .k = 1024, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16}}) {
    std::printf("run %ld x %ld x %ld: %.2f us of host time a call\n", static_cast<long>(problem.m),
                static_cast<long>(problem.n), static_cast<long>(problem.k), median_us_per_call(problem));
  }
}
