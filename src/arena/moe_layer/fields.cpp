// The problems of layers: in suites and on a command line.
#include "arena/moe_layer/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arena/gemm/suite_keys.hpp"
#include "arena/moe_layer/parts.hpp"

namespace thresher::arena {
namespace {

/// Whether a scale is given for it, and not found.
bool is_given_a_scale(Format format) { return format == Format::fp8_tensor || format == Format::nvfp4; }

/// The one scale of an intermediate that is given one.
float intermediate_scale(const ProblemTable& tables) {
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
  const auto intermediates = choices<Format>(tables, "intermediate", named(intermediate_formats), std::nullopt);
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

using LayerField = Field<LayerTask>;

void set_experts(LayerTask& task, const std::string& text) {
  task.problem.experts = task.total_experts = std::stoll(text);
  task.problem.top_k = std::min(task.problem.top_k, task.problem.experts);
}

void add_router_fields(Fields<LayerTask>& fields) {
  fields.push_back(extent<LayerTask>("experts", "experts of the layer", in_problem(&MoeProblem::experts)));
  fields.back().set = set_experts;
  fields.push_back(extent<LayerTask>("of_experts", "experts that there are, of which the others are somewhere else",
                                     [](auto& task) -> auto& { return task.total_experts; }));
  fields.push_back(
      extent<LayerTask>("top_k", "choices of a token, at most as many as experts", in_problem(&MoeProblem::top_k)));
}

/// Reads the keys that a layer of experts has besides those of a gated MLP.
void read_router(const ProblemTable& tables, Lists& lists, LayerTask& task, BiasFormat& bias) {
  const Router router = router_of(tables);
  if (router.experts == 0) {
    tables.problem.fail("experts", "is missing: a layer has so many");
  }
  lists.over("rows", choices<Format>(tables, "rows", named(unscaled_output_formats), Format::bf16), task.problem.rows);
  lists.over("bias", choices<BiasFormat>(tables, "bias", biases, BiasFormat{}), bias);
  lists.over("order", choices<Order>(tables, "order", orders, Order{}), task.order);
  lists.over("routing", router.routings, task.routing);
  task.problem.experts = router.experts;
  task.problem.top_k = router.top_k;
  task.total_experts = router.total_experts;
  task.skipped = integer_or(tables, "skipped", 2, 0);
  task.repeated = integer_or(tables, "repeated", 1, 0);
}

}  // namespace

Fields<LayerTask> layer_fields(bool is_dense) {
  const auto operand = [](const char* key, const char* help, Format MoeProblem::* place) {
    return choice<LayerTask>(key, help, operand_formats, in_problem(place));
  };
  Fields<LayerTask> all{
      operand("x", "format of x; bf16 when left out", &MoeProblem::x),
      operand("gate_up", "format of gate and up; bf16 when left out", &MoeProblem::gate_up),
      choice<LayerTask>("intermediate", "format of what lies between the products; bf16 when left out",
                        intermediate_formats, in_problem(&MoeProblem::intermediate)),
      operand("down", "format of down; bf16 when left out", &MoeProblem::down),
      choice<LayerTask>("out", "format of out; bf16 when left out", unscaled_output_formats,
                        in_problem(&MoeProblem::out)),
      activation_field<LayerTask>(in_problem(&MoeProblem::activation)),
      extent<LayerTask>("tokens", "tokens", in_problem(&MoeProblem::tokens)),
      extent<LayerTask>("hidden_size", "columns of x and of out", in_problem(&MoeProblem::hidden_size)),
      extent<LayerTask>("intermediate_size", "rows of gate and of up", in_problem(&MoeProblem::intermediate_size))};
  if (!is_dense) {
    add_router_fields(all);
  }
  return all;
}

LayerTask layer_example(bool is_dense) {
  if (is_dense) {
    return gated_mlp_task({.tokens = 70, .hidden_size = 136, .intermediate_size = 72});
  }
  LayerTask task;
  task.problem = {.experts = 4, .tokens = 21, .top_k = 3, .hidden_size = 136, .intermediate_size = 72};
  task.total_experts = task.problem.experts;
  task.skipped = 7;
  task.repeated = 5;
  return task;
}

void add_layer_problems(bool is_dense, const ProblemTable& tables, std::vector<Problem>& problems) {
  LayerTask task = is_dense ? gated_mlp_task({}) : LayerTask{};
  MoeProblem& p = task.problem;
  BiasFormat bias;
  Lists lists;
  read_lists(layer_fields(is_dense),
             {"tokens", "hidden_size", "intermediate_size", "x", "gate_up", "intermediate", "down", "out"}, tables,
             lists, task);
  lists.over("activation", activations_of(tables), p.activation);
  lists.over("scale_layout", scale_layouts_of(tables), task.scale_layout);
  const float scale = intermediate_scale(tables);
  if (!is_dense) {
    read_router(tables, lists, task, bias);
  }
  lists.each({"order", "bias", "rows", "routing", "scale_layout", "activation", "x", "gate_up", "intermediate", "down",
              "out", "hidden_size", "intermediate_size", "tokens"},
             [&] {
               p.intermediate_scale = is_given_a_scale(p.intermediate) ? scale : 1.0F;
               p.gate_up_bias = p.down_bias = bias.has_value();
               task.bias_format = bias.value_or(Format::bf16);
               check_task(tables, task);
               add_once(tables, "hidden_size", problem_of(task), problems);
             });
}

}  // namespace thresher::arena
