#include "arena/moe_layer/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "arena/gemm/generate.hpp"
#include "arena/random.hpp"
#include "core/grouped_weights.hpp"

namespace thresher::arena {
namespace {

constexpr const char* of_gate_up = "gate_up.";
constexpr const char* of_down = "down.";

std::uint64_t seed_of(const LayerTask& task, Distribution distribution, std::uint64_t seed, const char* what) {
  return derive_seed(seed, fmt::format("{} {} {}", label_of(task), name(distribution), what));
}

HostTensor tokens(const LayerTask& task, Distribution distribution, std::uint64_t seed) {
  const MoeProblem& p = task.problem;
  const DualGemmProblem operands{
      .m = p.tokens, .n = p.intermediate_size, .k = p.hidden_size, .a = p.x, .b = p.gate_up, .out = p.intermediate};
  HostTensor x = OperandSource(operands, task.scale_layout, distribution, seed).draw("a", p.tokens);
  x.name = "x";
  return x;
}

template <class T>
HostTensor of_choices(const LayerTask& task, const char* name, Format format, const std::vector<T>& values) {
  HostTensor tensor = make_host_tensor(name, format, {task.problem.tokens, task.problem.top_k});
  std::memcpy(tensor.values.data(), values.data(), tensor.values.size());
  return tensor;
}

/// Mostly as a router's are, and some below 0.
std::vector<float> router_weights(std::size_t count, Random& random) {
  std::vector<float> weights(count);
  std::generate(weights.begin(), weights.end(), [&] {
    const auto magnitude = static_cast<float>(0.05 + 0.95 * random.uniform());
    return random.below(8) == 0 ? -magnitude : magnitude;
  });
  return weights;
}

void add_weights(const ProductTask& product, const char* prefix, Distribution distribution, std::uint64_t seed,
                 std::vector<HostTensor>& inputs) {
  for (HostTensor& weight : weight_inputs(product, distribution, derive_seed(seed, prefix))) {
    weight.name = prefix + weight.name;
    inputs.push_back(std::move(weight));
  }
}

FindTensor with_prefix(const char* prefix, const FindTensor& find) {
  return [prefix, find](std::string_view name) { return find(prefix + std::string(name)); };
}

}  // namespace

std::vector<HostTensor> layer_activations(const LayerTask& task, const ChosenExperts& chosen, Distribution distribution,
                                          std::uint64_t seed) {
  const std::uint64_t own = seed_of(task, distribution, seed, "tokens");
  std::vector<HostTensor> tensors{tokens(task, distribution, own)};
  if (!task.is_dense) {
    Random random(derive_seed(own, "router"));
    tensors.push_back(of_choices(task, "topk_ids", Format::int32, chosen));
    tensors.back().is_index = true;
    tensors.push_back(of_choices(task, "topk_weights", Format::fp32, router_weights(chosen.size(), random)));
  }
  return tensors;
}

std::vector<HostTensor> layer_activations(const LayerTask& task, Distribution distribution, std::uint64_t seed) {
  return layer_activations(
      task, task.is_dense ? ChosenExperts{} : chosen_experts(task, seed_of(task, distribution, seed, "who is chosen")),
      distribution, seed);
}

std::vector<HostTensor> layer_inputs(const LayerTask& task, Distribution distribution, std::uint64_t seed) {
  std::vector<HostTensor> activations = layer_activations(task, distribution, seed);
  std::vector<HostTensor> inputs;
  inputs.push_back(std::move(activations.front()));
  add_weights(gate_up_of(task), of_gate_up, distribution, seed, inputs);
  add_weights(down_of(task), of_down, distribution, seed, inputs);
  std::move(activations.begin() + 1, activations.end(), std::back_inserter(inputs));
  return inputs;
}

std::vector<HostTensor> layer_outputs_of(const LayerTask& task) {
  return {make_host_tensor("out", task.problem.out, {task.problem.tokens, task.problem.hidden_size})};
}

GroupedWeights gate_up_weights(const LayerTask& task, const FindTensor& find) {
  return grouped_weights(gate_up_of(task), with_prefix(of_gate_up, find));
}

GroupedWeights down_weights(const LayerTask& task, const FindTensor& find) {
  return grouped_weights(down_of(task), with_prefix(of_down, find));
}

GatedMlpWeights gated_mlp_weights(const FindTensor& find) {
  return {.gate = slot_matrix(find("gate_up.b1"), 0),
          .up = slot_matrix(find("gate_up.b2"), 0),
          .down = slot_matrix(find("down.b1"), 0)};
}

MoeTensors layer_tensors(const FindTensor& find) {
  return {.x = find("x"), .topk_ids = find("topk_ids"), .topk_weights = find("topk_weights"), .out = find("out")};
}

}  // namespace thresher::arena
