// `thresher emulate`: runs kernels on this CPU, thread by thread, and checks every access and every wait.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "arena/emulation/examine.hpp"
#include "arena/operations.hpp"
#include "cli/cli.hpp"
#include "cli/options.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

using Kernels = std::vector<std::shared_ptr<const arena::EmulatedKernel>>;

/// The emulator runs threads one after another, many thousand times slower than a card.
constexpr int max_emulated_extent = 1 << 16;
constexpr double max_operations = 1e10;
constexpr double max_bytes = 1 << 30;

/// The request for one operation.
struct Request {
  const arena::Operation& operation;
  const arena::EmulatedOperation& kernels;
  std::string strategy{};
  std::string knobs{};
  std::string device{};  ///< of the table; empty: any that the kernels support
  std::string arch{};    ///< or its architecture
  arena::Problem problem = operation.example();
  std::vector<std::function<void(arena::Problem&)>> extents{};  ///< they set the extents that were given
  std::uint64_t schedules = 64;
  std::uint64_t seed = 0;
  std::string tensor_sums = "hardware";
};

/// The requested card; null without one.
const DeviceSpec* card_of(const Request& request) {
  return !request.device.empty() ? &device_spec(request.device)
         : !request.arch.empty() ? &device_spec_of_arch(request.arch)
                                 : nullptr;
}

/// The kernel with the requested knobs, or the compiled-in ones of the requested strategies.
Kernels kernels_of(const Request& request) {
  const DeviceSpec* const card = card_of(request);
  if (!request.knobs.empty()) {
    const arena::Emulation emulation = request.kernels.planned(request.problem, {request.strategy, request.knobs},
                                                               card != nullptr ? *card : device_spec("H200"));
    if (!emulation.kernel) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the knobs \"{}\" cannot be emulated: {}", request.knobs, emulation.why_none));
    }
    return {emulation.kernel};
  }
  Kernels kernels;
  for (const std::string& strategy : request.kernels.strategies()) {
    if (request.strategy.empty() || request.strategy == strategy) {
      const Kernels some = request.kernels.samples(strategy, card);
      kernels.insert(kernels.end(), some.begin(), some.end());
    }
  }
  if (kernels.empty() && card != nullptr) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}{} has no kernels for {} ({}): leave the card out to emulate those of others",
                            request.operation.name(), request.strategy.empty() ? "" : " " + request.strategy,
                            card->name, name(card->arch)));
  }
  return kernels;
}

/// The kernel's own small problems. With given extents only the first, which fits its formats, with these extents.
std::vector<arena::Problem> problems_for(const arena::EmulatedKernel& kernel, const Request& request) {
  std::vector<arena::Problem> problems = kernel.edges();
  if (!request.extents.empty()) {
    problems.erase(problems.begin() + 1, problems.end());
    for (const auto& set : request.extents) {
      set(problems.front());
    }
  }
  return problems;
}

void check_size(const arena::Problem& problem) {
  const arena::Operation& operation = problem.operation();
  const arena::Cost cost = operation.cost(problem);
  const double bytes = cost.compulsory_bytes + operation.working_bytes(problem);
  if (cost.operations > max_operations || bytes > max_bytes) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} takes {:.2g} operations and {:.2g} bytes, expected at most {:.2g} and {:.2g} to emulate",
                    label(problem), cost.operations, bytes, max_operations, max_bytes));
  }
}

struct Job {
  std::shared_ptr<const arena::EmulatedKernel> kernel;
  arena::Problem problem;
};

/// All jobs, or an error before the first of them runs.
std::vector<Job> jobs_of(const Request& request) {
  std::vector<Job> jobs;
  for (const auto& kernel : kernels_of(request)) {
    for (arena::Problem& problem : problems_for(*kernel, request)) {
      kernel->check(problem);
      check_size(problem);
      jobs.push_back({kernel, std::move(problem)});
    }
  }
  return jobs;
}

void emulate(const Request& request, Context& context) {
  std::vector<std::uint64_t> seeds(request.schedules);
  std::iota(seeds.begin(), seeds.end(), request.seed);
  emulator::Options options;
  options.tensor_sums =
      request.tensor_sums == "float32" ? emulator::TensorSums::float32 : emulator::TensorSums::hardware;
  for (const auto& [kernel, problem] : jobs_of(request)) {
    const std::string title = fmt::format("{} on {}", kernel->title(), label(problem));
    const arena::Examination examined = arena::examine(*kernel, problem, seeds, options);
    if (examined.clean()) {
      fmt::print("{}: clean in {} schedules, seeds {} to {}\n", title, examined.runs, seeds.front(), seeds.back());
    } else {
      fmt::print("{}: finding\n{}", title, examined.finding);
      context.exit_status = gate_failed;
    }
    std::fflush(stdout);  // minutes may pass until the next line, and a finding must not be lost
  }
}

/// The values of the options of the operation's problems.
struct Given {
  std::vector<arena::ProblemOption> options;
  std::vector<CLI::Option*> parsed{};

  /// Without `knobs`, which select one kernel, the samples compute problems of their own formats.
  void add_to(CLI::App& command, CLI::Option* knobs) {
    for (const arena::ProblemOption& option : options) {
      CLI::Option* const added =
          option.is_flag ? command.add_flag(option.name, option.help) : command.add_option(option.name, option.help);
      if (!option.allowed.empty()) {
        added->check(CLI::IsMember(option.allowed));
      } else if (!option.is_flag) {
        added->check(CLI::Range(1, max_emulated_extent));
      }
      if (!option.is_extent) {
        added->needs(knobs);
      }
      parsed.push_back(added);
    }
  }
  void set(Request& request) const {
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (parsed[i]->count() > 0) {
        const auto set = [set = options[i].set, text = options[i].is_flag ? "" : parsed[i]->results().back()](
                             arena::Problem& problem) { set(problem, text); };
        set(request.problem);
        if (options[i].is_extent) {
          request.extents.push_back(set);
        }
      }
    }
  }
};

void add_operation(CLI::App& emulate_command, const arena::Operation& operation,
                   const arena::EmulatedOperation& kernels, Context& context) {
  const auto request = std::make_shared<Request>(Request{operation, kernels});
  const auto given = std::make_shared<Given>(Given{operation.options()});
  CLI::App* command = emulate_command.add_subcommand(std::string(operation.name()), "Its kernels");
  command->add_option("--strategy", request->strategy, "all when left out")->check(CLI::IsMember(kernels.strategies()));
  CLI::Option* const knobs = command->add_option("--knobs", request->knobs,
                                                 "one kernel, in the words of `thresher plan`; samples when left out");
  CLI::Option* const device =
      add_device_table(*command, request->device, "the card; with --knobs H200, else any, when left out");
  command->add_option("--arch", request->arch, "the card by its architecture, as sm_100f")->excludes(device);
  given->add_to(*command, knobs);
  command->add_option("--schedules", request->schedules, "how many orders of threads and copies to try")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", request->seed, "the first schedule; a finding names the one that shows it")
      ->capture_default_str();
  command
      ->add_option("--tensor-sums", request->tensor_sums,
                   "how products into Blackwell's tensor memory are summed: as the tensor core does, or in float32")
      ->check(CLI::IsMember({"hardware", "float32"}))
      ->capture_default_str();
  command->callback([request, given, &context] {
    given->set(*request);
    emulate(*request, context);
  });
}

}  // namespace

void add_emulate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("emulate", "Run an operation's kernels on this CPU and check every access");
  command->require_subcommand(1);
  for (const arena::Operation* const operation : arena::operations()) {
    if (const arena::EmulatedOperation* const kernels = operation->emulated()) {
      add_operation(*command, *operation, *kernels, context);
    }
  }
}

}  // namespace thresher::cli
