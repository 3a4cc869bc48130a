#include "arena/moe_layer/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "reference/moe_layer.hpp"

namespace thresher::arena {
namespace {

std::string bias_text(const LayerTask& task) {
  const MoeProblem& p = task.problem;
  if (!p.gate_up_bias && !p.down_bias) {
    return "";
  }
  return fmt::format(" {}bias({})", !p.down_bias ? "gate-up-" : !p.gate_up_bias ? "down-" : "", name(task.bias_format));
}

ProductTask product_of(const LayerTask& task, const GroupedProblem& problem) {
  ProductTask product;
  product.problem = problem;
  product.counts.assign(static_cast<std::size_t>(problem.experts), 0);
  product.bias_format = task.bias_format;
  product.scale_layout = task.scale_layout;
  return product;
}

}  // namespace

LayerTask gated_mlp_task(const GatedMlpProblem& problem, ScaleLayout scale_layout) {
  LayerTask task;
  task.problem = reference::layer_of_one_expert(problem);
  task.total_experts = 1;
  task.scale_layout = scale_layout;
  task.is_dense = true;
  return task;
}

GatedMlpProblem gated_mlp_of(const LayerTask& task) {
  const MoeProblem& p = task.problem;
  return {.tokens = p.tokens,
          .hidden_size = p.hidden_size,
          .intermediate_size = p.intermediate_size,
          .x = p.x,
          .gate_up = p.gate_up,
          .intermediate = p.intermediate,
          .intermediate_scale = p.intermediate_scale,
          .down = p.down,
          .out = p.out,
          .activation = p.activation};
}

ProductTask gate_up_of(const LayerTask& task) {
  ProductTask product = product_of(task, gate_up_problem(task.problem));
  product.order = task.order;
  return product;
}

ProductTask down_of(const LayerTask& task) { return product_of(task, down_problem(task.problem)); }

LayerTask completed(LayerTask task) {
  MoeProblem& p = task.problem;
  p.expected_rows =
      std::max<std::int64_t>(size_product(task.choices(), p.experts) / std::max(task.total_experts, p.experts), 1);
  return task;
}

LayerMultiples multiples_of(const MoeProblem& p) {
  const auto of = [](std::initializer_list<int> all) {
    return std::accumulate(all.begin(), all.end(), std::int64_t{1},
                           [](std::int64_t one, int other) { return std::lcm(one, std::int64_t{other}); });
  };
  return {of({format_traits(p.x).k_multiple, format_traits(p.gate_up).k_multiple}),
          of({format_traits(p.intermediate).k_multiple, format_traits(p.intermediate).n_multiple,
              format_traits(p.down).k_multiple})};
}

LayerTask fitted(LayerTask task) {
  const auto [hidden, intermediate] = multiples_of(task.problem);
  task.problem.hidden_size = round_up(task.problem.hidden_size, hidden);
  task.problem.intermediate_size = round_up(task.problem.intermediate_size, intermediate);
  return task;
}

std::string choices_obstacle(const LayerTask& task) {
  const MoeProblem& p = task.problem;
  if (task.total_experts < p.experts) {
    return fmt::format("there are {} experts, expected at least the layer's {}", task.total_experts, p.experts);
  }
  if (p.top_k > task.total_experts) {
    return fmt::format("a token chooses {} of {} experts, expected at most as many as there are", p.top_k,
                       task.total_experts);
  }
  return "";
}

Problem problem_of(LayerTask task) {
  const Operation& operation = task.is_dense ? gated_mlp_operation() : moe_layer_operation();
  return {operation, completed(std::move(task))};
}

std::string label_of(const LayerTask& task) {
  const MoeProblem& p = task.problem;
  std::string text =
      fmt::format("{}x{}x{} {}*{}->{}*{}->{}", task.is_dense ? p.tokens : p.experts, p.intermediate_size, p.hidden_size,
                  name(p.x), name(p.gate_up), name(p.intermediate), name(p.down), name(p.out));
  if (!task.is_dense) {
    text += fmt::format(" {} tokens ({} of {} {})", p.tokens, p.top_k, task.total_experts, name(task.routing));
    text += p.rows != p.out ? fmt::format(" rows({})", name(p.rows)) : "";
  }
  text += p.intermediate_scale != 1.0F ? fmt::format(" scale({})", p.intermediate_scale) : "";
  text += activation_text(p.activation) + bias_text(task);
  text += task.order ? fmt::format(" {}", name(*task.order)) : "";
  text += task.skipped > 0 ? fmt::format(" skipped({})", task.skipped) : "";
  text += task.repeated > 0 ? fmt::format(" repeated({})", task.repeated) : "";
  text += task.scale_layout != ScaleLayout::row_major ? fmt::format(" {}", name(task.scale_layout)) : "";
  return text;
}

}  // namespace thresher::arena
