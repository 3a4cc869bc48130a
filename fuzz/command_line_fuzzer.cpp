// Command lines: words between NULs, for a command with an option of every kind. Every error of the parser must be
// explained in words.
#include <CLI/CLI.hpp>
#include <vector>

#include "cli/by_name.hpp"
#include "cli/problem_option.hpp"
#include "cli/wording.hpp"
#include "fuzzed.hpp"
#include "thresher/dual_gemm.hpp"

using namespace thresher;

namespace {

/// The command; parsing a line clears the values of the previous one.
struct Command {
  Command() {
    app.require_subcommand(1);
    CLI::App& run = *app.add_subcommand("run");
    CLI::App& plan = *app.add_subcommand("plan");
    CLI::Option* const seed = run.add_option("--seed", whole);
    run.add_option("--window", some)->expected(2)->delimiter(',')->needs(seed);
    run.add_option("--scale", real)->excludes(seed);
    run.add_flag("--on", is_on);
    run.add_option("--numerics", numerics)->transform(cli::by_name(all_numerics));
    run.add_option("--m", whole)->check(CLI::Range(1, 100));
    problem.add_to(plan);
    plan.callback([this] {
      const DualGemmProblem asked = problem.problem();
      fuzz::require(asked.m > 0 && asked.n > 0 && asked.k > 0);
    });
    cli::take_numbers_alone(app);
  }

  CLI::App app{"fuzzed"};
  std::uint64_t whole = 0;
  std::vector<std::int64_t> some;
  double real = 0;
  bool is_on = false;
  Numerics numerics = Numerics::exact;
  cli::ProblemArgument problem;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Command command;
  CLI::App& app = command.app;
  std::string_view rest = fuzz::text_of(data, size);
  std::vector<std::string> words{"fuzzed"};
  while (!rest.empty()) {
    words.emplace_back(fuzz::take_text(rest));
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(word.c_str());
  }
  try {
    cli::check_subcommands(app, std::span(arguments).subspan(1));
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success&) {
  } catch (const CLI::ParseError& error) {
    fuzz::require(!cli::in_words(error, app).empty());
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::invalid_argument);
  }
  return 0;
}
