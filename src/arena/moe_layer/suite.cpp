// The [[problem]]s of suites about layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arena/dual_gemm/activation_keys.hpp"
#include "arena/dual_gemm/scale_layout_keys.hpp"
#include "arena/grouped_gemm/suite_keys.hpp"
#include "arena/moe_layer/operation.hpp"
#include "arena/moe_layer/task.hpp"

namespace thresher::arena {
namespace {

/// Whether a scale is given for it, and not found.
bool is_given_a_scale(Format format) { return format == Format::fp8_tensor || format == Format::nvfp4; }

/// The one scale of an intermediate that is given one.
float intermediate_scale(const ProblemTable& tables, const std::vector<Format>& intermediates) {
  const std::string key = "intermediate_scale";
  const ConfigTable& table = tables.holder(key);
  const auto number = table.optional_number(key);
  if (!number) {
    return 1.0F;
  }
  const auto scale = static_cast<float>(*number);
  if (!std::isfinite(scale) || scale <= 0) {
    table.fail(key, fmt::format("is {}, but must be a number above 0 that a float of 32 bits holds", *number));
  }
  if (std::none_of(intermediates.begin(), intermediates.end(), is_given_a_scale)) {
    table.fail(key, "is of the intermediates fp8_tensor and nvfp4, which are not among these");
  }
  return scale;
}

void check_multiple(const ProblemTable& tables, const char* key, std::int64_t extent, std::int64_t multiple) {
  if (extent % multiple != 0) {
    tables.holder(key).fail(key,
                            fmt::format("is {}, but must be a multiple of {} for these formats", extent, multiple));
  }
}

void check_task(const ProblemTable& tables, const LayerTask& task) {
  const MoeProblem& p = task.problem;
  const auto depth = [](Format one, Format other) {
    return std::max(format_traits(one).k_multiple, format_traits(other).k_multiple);
  };
  check_multiple(tables, "hidden_size", p.hidden_size, depth(p.x, p.gate_up));
  check_multiple(tables, "intermediate_size", p.intermediate_size, depth(p.intermediate, p.down));
  check_multiple(tables, "intermediate_size", p.intermediate_size, format_traits(p.intermediate).n_multiple);
  if (task.choices() > max_drawn_rows) {
    tables.holder("tokens").fail(
        "tokens", fmt::format("makes {} choices, expected at most {} in a problem", task.choices(), max_drawn_rows));
  }
  if (task.repeated > 0 && p.top_k < 2) {
    tables.holder("repeated").fail("repeated", "is of tokens that choose several experts, and top_k is 1");
  }
  check_scale_layout(tables, task.scale_layout,
                     {{p.x, OperandRole::tokens}, {p.gate_up, OperandRole::weights}, {p.down, OperandRole::weights}});
  check_order(tables, task.order, p.gate_up, p.intermediate_size, task.scale_layout);
}

/// Lists that multiply, each into its place of a task.
struct LayerKeys {
  explicit LayerKeys(const ProblemTable& tables)
      : tokens(tables.extents("tokens", 1)),
        hidden_sizes(tables.extents("hidden_size", 1)),
        intermediate_sizes(tables.extents("intermediate_size", 1)),
        xs(choices<Format>(tables, "x", named(operand_formats), std::nullopt)),
        gate_ups(choices<Format>(tables, "gate_up", named(operand_formats), std::nullopt)),
        intermediates(choices<Format>(tables, "intermediate", named(intermediate_formats), std::nullopt)),
        downs(choices<Format>(tables, "down", named(operand_formats), std::nullopt)),
        outs(choices<Format>(tables, "out", named(unscaled_output_formats), std::nullopt)),
        activations(activations_of(tables)),
        layouts(scale_layouts_of(tables)),
        scale(intermediate_scale(tables, intermediates)) {}

  /// `body` with every problem that they multiply to in `task`.
  template <class Body>
  void each_task(LayerTask& task, const Body& body) const {
    MoeProblem& p = task.problem;
    const auto by_tokens = [&] { each(tokens, p.tokens, body); };
    const auto by_size = [&] { each(intermediate_sizes, p.intermediate_size, by_tokens); };
    const auto by_hidden = [&] { each(hidden_sizes, p.hidden_size, by_size); };
    const auto by_out = [&] { each(outs, p.out, by_hidden); };
    const auto by_down = [&] { each(downs, p.down, by_out); };
    const auto by_intermediate = [&] {
      for (const Format format : intermediates) {
        p.intermediate = format;
        p.intermediate_scale = is_given_a_scale(format) ? scale : 1.0F;
        by_down();
      }
    };
    const auto by_gate_up = [&] { each(gate_ups, p.gate_up, by_intermediate); };
    const auto by_x = [&] { each(xs, p.x, by_gate_up); };
    const auto by_activation = [&] { each(activations, p.activation, by_x); };
    each(layouts, task.scale_layout, by_activation);
  }

  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> hidden_sizes;
  std::vector<std::int64_t> intermediate_sizes;
  std::vector<Format> xs;
  std::vector<Format> gate_ups;
  std::vector<Format> intermediates;
  std::vector<Format> downs;
  std::vector<Format> outs;
  std::vector<Activation> activations;
  std::vector<ScaleLayout> layouts;
  float scale;  ///< of intermediates that are given one
};

void add_gated_mlps(const ProblemTable& tables, std::vector<Problem>& problems) {
  LayerTask task = gated_mlp_task({});
  LayerKeys(tables).each_task(task, [&] {
    check_task(tables, task);
    add_once(tables, "hidden_size", problem_of(task), problems);
  });
}

void add_layers_of_experts(const ProblemTable& tables, std::vector<Problem>& problems) {
  const LayerKeys keys(tables);
  const Router router = router_of(tables);
  if (router.experts == 0) {
    tables.problem.fail("experts", "is missing: a layer has so many");
  }
  const auto rows = choices<Format>(tables, "rows", named(unscaled_output_formats), Format::bf16);
  const auto gate_up_biases = choices<BiasFormat>(tables, "bias", biases, BiasFormat{});
  const auto of_order = choices<Order>(tables, "order", orders, Order{});
  LayerTask task;
  MoeProblem& p = task.problem;
  p.experts = router.experts;
  p.top_k = router.top_k;
  task.total_experts = router.total_experts;
  task.skipped = integer_or(tables, "skipped", 2, 0);
  task.repeated = integer_or(tables, "repeated", 1, 0);
  BiasFormat bias;
  const auto add = [&] {
    p.gate_up_bias = p.down_bias = bias.has_value();
    task.bias_format = bias.value_or(Format::bf16);
    check_task(tables, task);
    add_once(tables, "hidden_size", problem_of(task), problems);
  };
  const auto of_keys = [&] { keys.each_task(task, add); };
  const auto by_routing = [&] { each(router.routings, task.routing, of_keys); };
  const auto by_rows = [&] { each(rows, p.rows, by_routing); };
  const auto by_bias = [&] { each(gate_up_biases, bias, by_rows); };
  each(of_order, task.order, by_bias);
}

}  // namespace

void LayerOperation::add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const {
  if (is_dense_) {
    add_gated_mlps(tables, problems);
  } else {
    add_layers_of_experts(tables, problems);
  }
}

}  // namespace thresher::arena
