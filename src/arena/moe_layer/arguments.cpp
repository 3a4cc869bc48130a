// The arguments of user kernels for layers.
#include <fmt/format.h>

#include "arena/moe_layer/inputs.hpp"
#include "arena/moe_layer/parts.hpp"

namespace thresher::arena {
namespace {

void add_stacks(Arguments& all) {
  all.weight("gate", "[experts, intermediate_size, hidden_size]; with an order gate and up, 2 intermediate_size rows",
             "gate_up.b1");
  all.weight("up", "[experts, intermediate_size, hidden_size]; none with an order", "gate_up.b2");
  all.weight("down", "[experts, hidden_size, intermediate_size]", "down.b1");
  make_optional(all.weight("gate_bias", "of gate [experts, its rows]", "gate_up.bias1"));
  make_optional(all.weight("up_bias", "of up [experts, intermediate_size]", "gate_up.bias2"));
  make_optional(all.weight("down_bias", "of down [experts, hidden_size]", "down.bias1"));
  make_optional(all.weight("up_global_scales", "of up [experts], with an order; that of gate is the gate's",
                           "gate_up.up_global_scales"));
}

void add_matrices(const FindTensor& find, Arguments& all) {
  const auto add = [&](const char* name, const char* about, const char* tensor) {
    all.weight(name, about, tensor).value = only_matrix(find(tensor));
  };
  add("gate", "[intermediate_size, hidden_size]", "gate_up.b1");
  add("up", "[intermediate_size, hidden_size]", "gate_up.b2");
  add("down", "[hidden_size, intermediate_size]", "down.b1");
}

}  // namespace

std::vector<Argument> layer_arguments(const LayerTask& task, const FindTensor& find) {
  const MoeProblem& p = task.problem;
  Arguments all(find);
  all.extent("tokens", "rows of x and of out", p.tokens);
  all.extent("hidden_size", "columns of x and of out", p.hidden_size);
  all.extent("intermediate_size", "columns between the products", p.intermediate_size);
  if (!task.is_dense) {
    all.extent("experts", "of the layer", p.experts);
    all.extent("top_k", "choices of a token", p.top_k);
  }
  all.input("x", "[tokens, hidden_size]");
  if (task.is_dense) {
    add_matrices(find, all);
  } else {
    all.input("topk_ids", "int32 [tokens, top_k]: experts; a choice outside [0, experts) adds nothing");
    all.input("topk_weights", "float32 [tokens, top_k]: multiply the choices' rows before they are added");
    add_stacks(all);
  }
  all.output("out", "[tokens, hidden_size]");
  all.activation(p.activation);
  all.format("intermediate_format", "activations are rounded to it before down", p.intermediate);
  all.number("intermediate_scale", "of an intermediate in fp8_tensor or nvfp4; else 1", p.intermediate_scale);
  if (!task.is_dense) {
    all.format("rows_format", "a choice's row is rounded to it before it is added", p.rows);
    all.order(task.order);
  }
  return std::move(all).all();
}

std::string layer_formats(const LayerTask& task) {
  const MoeProblem& p = task.problem;
  return fmt::format("{}*{}->{}*{}->{}", name(p.x), name(p.gate_up), name(p.intermediate), name(p.down), name(p.out));
}

}  // namespace thresher::arena
