// `thresher profile`: explains a kernel's time, on this machine's GPU.
#include "arena/profile/profile.hpp"
#include "arena/gemm/task.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "arena/text_file.hpp"
#include "cli/planner_commands.hpp"
#include "cli/problem_option.hpp"

namespace thresher::cli {
namespace {

struct ProfileArguments {
  ProblemArgument problem;
  arena::ProfileOptions options;
  std::string device = "best";
  std::string json;
};

void profile(const ProfileArguments& arguments) {
  const arena::Problem problem = arena::problem_of(arguments.problem.problem());
  if (!arguments.json.empty()) {
    arena::check_writable(arguments.json, "the JSON file");
  }
  const auto rig = arena::make_rig(arguments.device);
  const arena::Profile found = arena::profile(*rig, problem, arguments.options);
  fmt::print("{}", arena::to_text(found));
  if (!arguments.json.empty()) {
    arena::write_text(arguments.json, arena::to_json(found, 1) + "\n", "the JSON file");
  }
}

}  // namespace

void add_profile(CLI::App& app, Context&) {
  const auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* command = app.add_subcommand(
      "profile", "Shows where a fused kernel's time goes: a timeline of its roles, and what each part could give back");
  arguments->problem.add_to(*command);
  command->add_option("--strategy", arguments->options.request.strategy,
                      "packed, interleaved, …; the default if not given");
  command->add_option("--knobs", arguments->options.request.knobs, "Its knobs, as `thresher plan` prints them");
  command->add_option("--device", arguments->device, "gpu, cuda:N or best")->capture_default_str();
  command->add_option("--rounds", arguments->options.rounds, "Samples of each variant")
      ->check(CLI::Range(6, 1000))
      ->capture_default_str();
  command->add_option("--json", arguments->json, "File for everything, as `thresher report --profile` takes it");
  command->callback([arguments] { profile(*arguments); });
}

}  // namespace thresher::cli
