// A gated MLP on the CPU: out = (silu(x·gateᵀ) ∘ (x·upᵀ))·downᵀ.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "thresher/thresher.hpp"

int main() {
  using namespace thresher;
  const GatedMlpProblem problem{.tokens = 2, .hidden_size = 32, .intermediate_size = 16, .out = Format::fp32};
  constexpr std::uint16_t one = 0x3F80;  // 1.0 in bf16, the default of every other format
  std::vector<std::uint16_t> x(2 * 32, one);
  std::vector<std::uint16_t> gate(16 * 32, one);
  std::vector<std::uint16_t> up(16 * 32, one);
  std::vector<std::uint16_t> down(32 * 16, one);
  std::vector<float> out(2 * 32);

  const Device device = Device::cpu();
  const GatedMlpWeights weights{.gate = Tensor::contiguous(gate.data(), Format::bf16, {16, 32}),
                                .up = Tensor::contiguous(up.data(), Format::bf16, {16, 32}),
                                .down = Tensor::contiguous(down.data(), Format::bf16, {32, 16})};
  try {
    const GatedMlp mlp = plan(device, problem, pack(device, weights));
    const Workspace workspace(device, mlp.workspace_bytes());
    mlp.run({}, Tensor::contiguous(x.data(), Format::bf16, {2, 32}),
            Tensor::contiguous(out.data(), Format::fp32, {2, 32}), workspace.data());
    std::printf("%s and %s on %s: out[0] = %g\n", mlp.gate_up_strategy().c_str(), mlp.down_strategy().c_str(),
                device.name().c_str(), out[0]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return out[0] == 16 * 1024.0F ? 0 : 1;  // silu(32)·32 = 1024 in bf16
}
