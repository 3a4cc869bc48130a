// A layer of MoE experts on the CPU. For each token, out = Σ weight · (silu(x·gateᵀ) ∘ (x·upᵀ))·downᵀ over its top-k
// assignments.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "thresher/thresher.hpp"

int main() {
  using namespace thresher;
  constexpr std::int64_t experts = 2;
  constexpr std::int64_t tokens = 3;
  constexpr std::int64_t hidden_size = 32;
  constexpr std::int64_t intermediate_size = 16;
  constexpr std::uint16_t one = 0x3F80;  // 1.0 in bf16
  constexpr std::uint16_t two = 0x4000;
  const MoeProblem problem{.experts = experts,
                           .tokens = tokens,
                           .top_k = 2,
                           .hidden_size = hidden_size,
                           .intermediate_size = intermediate_size,
                           .rows = Format::fp32,
                           .out = Format::fp32};
  std::vector<std::uint16_t> x(tokens * hidden_size, one);
  std::vector<std::uint16_t> gate_up(experts * 2 * intermediate_size * hidden_size, one);
  std::vector<std::uint16_t> down(experts * hidden_size * intermediate_size, one);
  std::fill(down.begin() + hidden_size * intermediate_size, down.end(), two);  // of expert 1
  std::vector<std::int32_t> ids{0, 1, 1, 1, 0, -1};                            // the last assignment has no expert
  std::vector<float> weights{0.5F, 0.25F, 1.0F, 1.0F, 2.0F, 9.0F};
  std::vector<float> out(tokens * hidden_size);

  const Device device = Device::cpu();
  const GroupedWeights gate_up_weights{
      .b1 = Tensor::contiguous(gate_up.data(), Format::bf16, {experts, 2 * intermediate_size, hidden_size}),
      .order = GateUpOrder::gate_first};
  const GroupedWeights down_weights{
      .b1 = Tensor::contiguous(down.data(), Format::bf16, {experts, hidden_size, intermediate_size})};
  try {
    const MoeLayer layer = plan(device, problem, pack(device, gate_up_weights), pack(device, down_weights));
    const Workspace workspace(device, layer.workspace_bytes());
    layer.run({},
              {.x = Tensor::contiguous(x.data(), Format::bf16, {tokens, hidden_size}),
               .topk_ids = Tensor::contiguous(ids.data(), Format::int32, {tokens, problem.top_k}),
               .topk_weights = Tensor::contiguous(weights.data(), Format::fp32, {tokens, problem.top_k}),
               .out = Tensor::contiguous(out.data(), Format::fp32, {tokens, hidden_size})},
              workspace.data());
    std::printf("%s and %s on %s: %g %g %g\n", layer.gate_up().strategy().c_str(), layer.down().strategy().c_str(),
                device.name().c_str(), out[0], out[hidden_size], out[2 * hidden_size]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  // silu(32)·32 is 1024 in bf16. Down adds up 16 of these, with a weight of 1 or 2.
  constexpr float row = 16 * 1024;
  return out[0] == row && out[hidden_size] == 4 * row && out[2 * hidden_size] == 2 * row ? 0 : 1;
}
