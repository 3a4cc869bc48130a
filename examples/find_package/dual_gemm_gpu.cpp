// The gate and up half of a gated MLP on a GPU: C = silu(A·B1ᵀ) ∘ (A·B2ᵀ).
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "thresher/thresher.hpp"

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) {
    throw std::runtime_error(cudaGetErrorString(error));
  }
}

void* copied_to_gpu(const std::vector<std::uint16_t>& values) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(std::uint16_t)));
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(std::uint16_t), cudaMemcpyHostToDevice));
  return memory;
}

std::uint16_t first_of_c() {
  using namespace thresher;
  const DualGemmProblem problem{.m = 2, .n = 16, .k = 32, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  constexpr std::uint16_t one = 0x3F80;  // 1.0 in bf16
  const Device device = Device::cuda();
  void* const a = copied_to_gpu(std::vector<std::uint16_t>(2 * 32, one));
  void* const gate = copied_to_gpu(std::vector<std::uint16_t>(16 * 32, one));
  void* const up = copied_to_gpu(std::vector<std::uint16_t>(16 * 32, one));
  void* const c = copied_to_gpu(std::vector<std::uint16_t>(2 * 16));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream));

  const PackedWeights weights = pack(device, Tensor::contiguous(gate, Format::bf16, {16, 32}, device.id()),
                                     Tensor::contiguous(up, Format::bf16, {16, 32}, device.id()));
  check(cudaFree(gate));  // the packed weights are a copy
  check(cudaFree(up));
  const DualGemm gemm = plan(device, problem, weights);
  const Workspace workspace(device, gemm.workspace_bytes());
  gemm.run(Stream{stream}, Tensor::contiguous(a, Format::bf16, {2, 32}, device.id()),
           Tensor::contiguous(c, Format::bf16, {2, 16}, device.id()), workspace.data());
  check(cudaStreamSynchronize(stream));  // before the plan, the workspace and the tensors are released

  std::uint16_t first = 0;
  check(cudaMemcpy(&first, c, sizeof first, cudaMemcpyDeviceToHost));
  std::printf("%s on %s: c[0] = 0x%x\n", gemm.strategy().c_str(), device.name().c_str(), unsigned{first});
  check(cudaStreamDestroy(stream));
  check(cudaFree(a));
  check(cudaFree(c));
  return first;
}

}  // namespace

int main() {
  try {
    return first_of_c() == 0x4480 ? 0 : 1;  // silu(32)·32 = 1024 in bf16
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
