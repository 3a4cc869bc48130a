// The gate and up half of a gated MLP on the CPU: C = silu(A·B1ᵀ) ∘ (A·B2ᵀ).
#include <cstdint>
#include <cstdio>
#include <vector>

#include "thresher/thresher.hpp"

int main() {
  using namespace thresher;
  const DualGemmProblem problem{.m = 2, .n = 16, .k = 32, .a = Format::bf16, .b = Format::bf16, .out = Format::fp32};
  constexpr std::uint16_t one = 0x3F80;  // 1.0 in bf16
  std::vector<std::uint16_t> a(2 * 32, one);
  std::vector<std::uint16_t> gate(16 * 32, one);
  std::vector<std::uint16_t> up(16 * 32, one);
  std::vector<float> c(2 * 16);

  const Device device = Device::cpu();
  const Tensor b1 = Tensor::contiguous(gate.data(), Format::bf16, {16, 32});
  const Tensor b2 = Tensor::contiguous(up.data(), Format::bf16, {16, 32});
  try {
    const DualGemm gemm = plan(device, problem, pack(device, b1, b2));
    const Workspace workspace(device, gemm.workspace_bytes());
    gemm.run({}, Tensor::contiguous(a.data(), Format::bf16, {2, 32}),
             Tensor::contiguous(c.data(), Format::fp32, {2, 16}), workspace.data());
    std::printf("%s on %s: c[0] = %g\n", gemm.strategy().c_str(), device.name().c_str(), c[0]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return c[0] == 1024.0F ? 0 : 1;  // silu(32)·32 = 1024 in float32
}
