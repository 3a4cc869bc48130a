// `thresher plan`: which contestant the planner would choose for a problem on a card, how long it would take and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "arena/predictions/calibration_file.hpp"
#include "cli/planner_commands.hpp"
#include "cli/problem_option.hpp"
#include "planner/rank.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

struct Arguments {
  ProblemOption problem;
  std::string device = "H200";
  std::string config;
  std::string calibration;
  std::size_t top = 5;
  bool sustained = false;
  bool refused = false;
  bool json = false;
};

nlohmann::json to_json(const planner::Choice<planner::DualGemmConfig>& choice) {
  const planner::Prediction& prediction = choice.prediction;
  const planner::TimeParts& parts = prediction.parts;
  return {{"contestant", planner::text(choice.config)},
          {"predicted_us", prediction.us()},
          {"bound", planner::name(prediction.bound)},
          {"parts_us",
           {{"launch", parts.launch_us},
            {"fill", parts.fill_us},
            {"main_loop", parts.main_us},
            {"exchange", parts.exchange_us},
            {"epilogue", parts.epilogue_us},
            {"passes", parts.passes_us}}},
          {"blocks", prediction.blocks},
          {"busy_share", prediction.busy_share},
          {"useful_share", prediction.useful_share},
          {"calibrated", prediction.calibrated},
          {"why", prediction.why}};
}

void print_json(const DualGemmProblem& problem, const planner::DualGemmRanking& ranking, const Arguments& arguments) {
  nlohmann::json json{{"problem",
                       {{"m", problem.m},
                        {"n", problem.n},
                        {"k", problem.k},
                        {"a", name(problem.a)},
                        {"b", name(problem.b)},
                        {"out", name(problem.out)}}},
                      {"device", arguments.device}};
  json["choices"] = nlohmann::json::array();
  json["refused"] = nlohmann::json::array();
  for (const auto& choice : ranking.choices) {
    json["choices"].push_back(to_json(choice));
  }
  for (const auto& refusal : ranking.refused) {
    json["refused"].push_back({{"contestant", planner::text(refusal.config)}, {"obstacles", refusal.obstacles}});
  }
  fmt::print("{}\n", json.dump(1));
}

void print_table(const planner::DualGemmRanking& ranking, const Arguments& arguments) {
  for (std::size_t i = 0; i < std::min(arguments.top, ranking.choices.size()); ++i) {
    const auto& choice = ranking.choices[i];
    fmt::print("{:>8.1f} us  {}\n             {}\n", choice.prediction.us(), planner::text(choice.config),
               choice.prediction.why);
  }
  if (ranking.choices.size() > arguments.top) {
    fmt::print("({} more are feasible; --top shows them)\n", ranking.choices.size() - arguments.top);
  }
  if (arguments.refused || ranking.choices.empty()) {
    for (const auto& refusal : ranking.refused) {
      for (const std::string& obstacle : refusal.obstacles) {
        fmt::print("not feasible  {}\n              {}\n", planner::text(refusal.config), obstacle);
      }
    }
  } else if (!ranking.refused.empty()) {
    fmt::print("({} are not feasible; --refused says why)\n", ranking.refused.size());
  }
}

void plan(const Arguments& arguments, Context& context) {
  const DualGemmProblem problem = arguments.problem.problem();
  const DeviceSpec& device = device_spec(arguments.device);
  const std::vector<planner::DualGemmConfig> candidates = arguments.config.empty()
                                                              ? planner::dual_gemm_candidates(problem, device)
                                                              : std::vector{planner::parse_config(arguments.config)};
  const planner::DualGemmRanking ranking = planner::rank(
      problem, candidates, device, arena::load_calibration(arguments.calibration, device.name).calibration,
      arguments.sustained ? Clocks::sustained : Clocks::burst);
  if (arguments.json) {
    print_json(problem, ranking, arguments);
  } else {
    print_table(ranking, arguments);
  }
  if (ranking.choices.empty()) {
    context.exit_status = gate_failed;
  }
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("plan", "Says which contestant would be chosen, how long it would take and why; needs no GPU");
  arguments->problem.add_to(*command);
  command->add_option("--device", arguments->device, "H100, H200, B200 or GB300")->capture_default_str();
  command->add_option("--config", arguments->config,
                      "Judge this contestant alone, as in \"exact 128x256x128 stages=3\"");
  command->add_option("--calibration", arguments->calibration,
                      "Parameters that `thresher calibrate` wrote; its own file if not given");
  command->add_option("--top", arguments->top, "How many to show")->capture_default_str();
  command->add_flag("--sustained", arguments->sustained, "At the clock of a hot card");
  command->add_flag("--refused", arguments->refused, "Show what is not feasible, and why");
  command->add_flag("--json", arguments->json, "For machines");
  command->callback([arguments, &context] { plan(*arguments, context); });
}

}  // namespace thresher::cli
