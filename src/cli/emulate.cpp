// `thresher emulate`: kernels run on this CPU, thread by thread, every access and every wait checked.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "arena/emulation/examine.hpp"
#include "arena/operations.hpp"
#include "cli/cli.hpp"
#include "cli/options.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

using Kernels = std::vector<std::shared_ptr<const arena::EmulatedKernel>>;

/// What is asked of one operation.
struct Request {
  const arena::Operation& operation;
  const arena::EmulatedOperation& kernels;
  std::string strategy{};
  std::string knobs{};
  std::string device = "H200";
  arena::Problem problem = operation.example();
  bool has_shape = false;  ///< an extent was given
  std::uint64_t schedules = 64;
  std::uint64_t seed = 0;
  std::string tensor_sums = "hardware";
};

/// The kernel with the knobs asked for, or the compiled-in ones of the strategies asked for.
Kernels kernels_of(const Request& request) {
  if (!request.knobs.empty()) {
    const arena::Emulation emulation =
        request.kernels.planned(request.problem, {request.strategy, request.knobs}, device_spec(request.device));
    if (!emulation.kernel) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the knobs \"{}\" cannot be emulated: {}", request.knobs, emulation.why_none));
    }
    return {emulation.kernel};
  }
  Kernels kernels;
  for (const std::string& strategy : request.kernels.strategies()) {
    if (request.strategy.empty() || request.strategy == strategy) {
      const Kernels some = request.kernels.samples(strategy);
      kernels.insert(kernels.end(), some.begin(), some.end());
    }
  }
  return kernels;
}

/// The problem asked for, or the kernel's own small ones.
std::vector<arena::Problem> problems_for(const arena::EmulatedKernel& kernel, const Request& request) {
  return request.has_shape ? std::vector{request.problem} : kernel.edges();
}

void emulate(const Request& request, Context& context) {
  std::vector<std::uint64_t> seeds(request.schedules);
  std::iota(seeds.begin(), seeds.end(), request.seed);
  emulator::Options options;
  options.tensor_sums =
      request.tensor_sums == "float32" ? emulator::TensorSums::float32 : emulator::TensorSums::hardware;
  for (const auto& kernel : kernels_of(request)) {
    for (const arena::Problem& problem : problems_for(*kernel, request)) {
      const std::string title = fmt::format("{} on {}", kernel->title(), label(problem));
      const arena::Examination examined = arena::examine(*kernel, problem, seeds, options);
      if (examined.clean()) {
        fmt::print("{}: clean in {} schedules, seeds {} to {}\n", title, examined.runs, seeds.front(), seeds.back());
      } else {
        fmt::print("{}: finding\n{}", title, examined.finding);
        context.exit_status = gate_failed;
      }
      std::fflush(stdout);  // minutes may pass until the next line, and what was found is not to be lost with it
    }
  }
}

/// What was given for each option of the operation's problems.
struct Given {
  std::vector<arena::ProblemOption> options;
  std::vector<CLI::Option*> parsed{};

  /// Without `knobs`, which name one kernel, the samples compute problems of their own formats.
  void add_to(CLI::App& command, CLI::Option* knobs) {
    for (const arena::ProblemOption& option : options) {
      CLI::Option* const added =
          option.is_flag ? command.add_flag(option.name, option.help) : command.add_option(option.name, option.help);
      if (!option.allowed.empty()) {
        added->check(CLI::IsMember(option.allowed));
      } else if (!option.is_flag) {
        added->check(CLI::Range(1, most_extent));
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
        options[i].set(request.problem, options[i].is_flag ? "" : parsed[i]->results().back());
        request.has_shape = request.has_shape || options[i].is_extent;
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
  command->add_option("--device", request->device, "with --knobs: the card that they are for")
      ->capture_default_str()
      ->needs(knobs);
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
