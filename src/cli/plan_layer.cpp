// `thresher plan moe-layer` and `gated-mlp`: predicts the launch of each product of a layer, and the time of the whole
// layer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "arena/moe_layer/calls.hpp"
#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/task.hpp"
#include "arena/operation/operation.hpp"
#include "arena/predictions/calibration_file.hpp"
#include "cli/options.hpp"
#include "cli/planner_commands.hpp"
#include "ops/layer_parts.hpp"
#include "ops/validate_product.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

struct LayerArguments {
  arena::Problem problem;
  std::string device = "H200";
  std::string strategy = arena::planned_layer;
  std::string knobs{};
  std::string calibration{};
  bool json = false;
};

nlohmann::json to_json(const strategies::PlannedCall& call) {
  return {{"strategy", call.strategy}, {"knobs", call.knobs.text()}};
}

void print_product(const char* product, const strategies::PlannedCall& call) {
  fmt::print("             {}: {}{}{}\n", product, call.strategy, call.knobs.empty() ? "" : " ", call.knobs.text());
}

void plan_layer(const LayerArguments& arguments) {
  const auto& task = arguments.problem.as<arena::LayerTask>();
  if (const std::string obstacle = choices_obstacle(task); !obstacle.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("plan moe-layer: {}", obstacle));
  }
  ops::of_product("gate_up", [&] { ops::validate(gate_up_problem(task.problem)); });
  ops::of_product("down", [&] { ops::validate(down_problem(task.problem)); });
  const DeviceSpec& device = device_spec(arguments.device);
  const arena::LayerCalls calls =
      arena::calls_of(task, arena::layer_options(arena::PlanRequest{arguments.strategy, arguments.knobs}), device);
  const planner::Prediction prediction =
      arena::forecast(calls, device, arena::load_calibration(arguments.calibration, device.name).calibration);
  if (arguments.json) {
    const nlohmann::json json{
        {"device", device.name},       {"problem", label_of(task)},       {"gate_up", to_json(calls.gate_up)},
        {"down", to_json(calls.down)}, {"predicted_us", prediction.us()}, {"why", prediction.why}};
    fmt::print("{}\n", json.dump(1));
    return;
  }
  fmt::print("{:>8.1f} us  {} {}\n", prediction.us(), arguments.problem.operation().name(), label_of(task));
  print_product("gate_up", calls.gate_up);
  print_product("down", calls.down);
  fmt::print("             {}\n", prediction.why);
}

void add_layer(CLI::App& plan_command, const char* name, const char* description, const arena::Operation& operation) {
  const auto arguments = std::make_shared<LayerArguments>(LayerArguments{.problem = operation.example()});
  // The command line replaces all values of the example.
  auto& task = arguments->problem.as<arena::LayerTask>();
  task.skipped = task.repeated = 0;
  CLI::App* command = plan_command.add_subcommand(name, description);
  for (const arena::ProblemOption& option : operation.options()) {
    CLI::Option* const added = command->add_option_function<std::string>(
        option.name, [arguments, set = option.set](const std::string& text) { set(arguments->problem, text); },
        option.help);
    if (option.is_extent) {
      added->check(CLI::Range(1, max_extent))->required(option.name != "--of-experts");
    } else {
      added->check(CLI::IsMember(option.allowed));
    }
  }
  add_device_table(*command, arguments->device, "The card, which need not be here")->capture_default_str();
  command->add_option("--strategy", arguments->strategy, "Of gate and up; planned: left to `plan`")
      ->capture_default_str();
  command->add_option("--knobs", arguments->knobs,
                      "Of gate and up; down= is the strategy of the other product, down.stages= a knob of it");
  command->add_option("--calibration", arguments->calibration,
                      "Parameters that `thresher calibrate` wrote; its own file if not given");
  command->add_flag("--json", arguments->json, "For machines");
  command->callback([arguments, command] {
    refuse_words_before(*command);
    plan_layer(*arguments);
  });
}

}  // namespace

void add_plan_layers(CLI::App& plan_command) {
  add_layer(plan_command, "moe-layer", "What a layer of experts would launch, and how long it would take",
            arena::moe_layer_operation());
  add_layer(plan_command, "gated-mlp", "The same of a gated MLP", arena::gated_mlp_operation());
}

}  // namespace thresher::cli
