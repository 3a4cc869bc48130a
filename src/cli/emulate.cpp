// `thresher emulate`: kernels run on this CPU, thread by thread, every access and every wait checked.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "arena/emulation/examine.hpp"
#include "cli/by_name.hpp"
#include "cli/cli.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

using Kernels = std::vector<std::shared_ptr<const arena::EmulatedKernel>>;

struct Request {
  std::string operation;
  std::string strategy;
  std::string knobs;
  std::string device = "H200";
  arena::Problem problem{
      .operation = "dual_gemm",
      .dual_gemm = {.m = 200, .n = 72, .k = 208, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16}};
  std::optional<Format> weights;
  bool softcap = false;
  std::uint64_t schedules = 64;
  std::uint64_t seed = 0;
};

const arena::EmulatedOperation& operation_of(const Request& request) {
  if (const arena::EmulatedOperation* operation = arena::find_emulated_operation(request.operation)) {
    return *operation;
  }
  throw Error(ErrorCode::unsupported, fmt::format("'{}' cannot be emulated; there is {}", request.operation,
                                                  fmt::join(arena::emulated_operations(), ", ")));
}

/// The kernel with the knobs asked for, or the compiled-in ones of the strategies asked for.
Kernels kernels_of(const Request& request) {
  const arena::EmulatedOperation& operation = operation_of(request);
  if (!request.knobs.empty()) {
    arena::Problem problem = request.problem;
    problem.dual_gemm.b = request.weights.value_or(problem.dual_gemm.a);
    problem.attention.problem.format = problem.dual_gemm.a;
    problem.attention.problem.softcap = request.softcap ? 1.0F : 0.0F;
    const arena::Emulation emulation =
        operation.planned(problem, {request.strategy, request.knobs}, device_spec(request.device));
    if (!emulation.kernel) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the knobs \"{}\" cannot be emulated: {}", request.knobs, emulation.why_none));
    }
    return {emulation.kernel};
  }
  Kernels kernels;
  for (const std::string& strategy : operation.strategies()) {
    if (request.strategy.empty() || request.strategy == strategy) {
      const Kernels some = operation.samples(strategy);
      kernels.insert(kernels.end(), some.begin(), some.end());
    }
  }
  if (kernels.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("no strategy '{}'; there are {}", request.strategy,
                                                         fmt::join(operation.strategies(), ", ")));
  }
  return kernels;
}

void run(const Request& request, Context& context) {
  std::vector<std::uint64_t> seeds(request.schedules);
  std::iota(seeds.begin(), seeds.end(), request.seed);
  for (const auto& kernel : kernels_of(request)) {
    // Attention has no shape on the command line: its kernels bring their own.
    const bool has_shape = request.operation == request.problem.operation;
    for (const arena::Problem& problem : has_shape ? std::vector{request.problem} : kernel->edges()) {
      const std::string title = kernel->title() + (has_shape ? "" : " on " + label(problem));
      const arena::Examination examined = arena::examine(*kernel, problem, seeds);
      if (examined.clean()) {
        fmt::print("{}: clean in {} schedules, seeds {} to {}\n", title, examined.runs, seeds.front(), seeds.back());
      } else {
        fmt::print("{}: finding\n{}", title, examined.finding);
        context.exit_status = gate_failed;
      }
    }
  }
}

void add_formats(CLI::App& command, const std::shared_ptr<Request>& request) {
  DualGemmProblem& gemm = request->problem.dual_gemm;
  command.add_option("--a", gemm.a, "with --knobs: format of a, or of q, k, v and o; bf16 when left out")
      ->transform(CLI::CheckedTransformer(by_name(operand_formats)));
  command.add_option("--b", request->weights, "with --knobs: format of b1 and b2, that of a when left out")
      ->transform(CLI::CheckedTransformer(by_name(operand_formats)));
  command.add_option("--out", gemm.out, "with --knobs: format of c, bf16 when left out")
      ->transform(CLI::CheckedTransformer(by_name(output_formats)));
  command
      .add_option("--head-dim", request->problem.attention.problem.head_dim,
                  "attention with --knobs: 64 or 128, 64 when left out")
      ->check(CLI::IsMember({64, 128}));
  command.add_flag("--softcap", request->softcap, "attention with --knobs: the kernel for a softcap");
  command.add_option("--activation", gemm.activation.kind, "with --knobs: silu when left out")
      ->transform(CLI::CheckedTransformer(by_name(all_activation_kinds)));
}

}  // namespace

void add_emulate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("emulate", "Run an operation's kernels on this CPU and check every access");
  const auto request = std::make_shared<Request>();
  DualGemmProblem& gemm = request->problem.dual_gemm;
  command->add_option("operation", request->operation, "dual_gemm or attention")->required();
  command->add_option("--strategy", request->strategy,
                      "sequential, interleaved, pingpong or packed; simple, pipelined, split, rows, rows_shared or "
                      "rows_coalesced; all when left out");
  command->add_option("--knobs", request->knobs, "one kernel, in the words of `thresher plan`; samples when left out");
  command->add_option("--device", request->device, "with --knobs: the card that they are for")->capture_default_str();
  add_formats(*command, request);
  command->add_option("--m", gemm.m, "tokens")->capture_default_str();
  command->add_option("--n", gemm.n, "outputs, a multiple of 8")->capture_default_str();
  command->add_option("--k", gemm.k, "a multiple of 16")->capture_default_str();
  command->add_option("--schedules", request->schedules, "how many orders of threads and copies to try")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", request->seed, "the first schedule; a finding names the one that shows it")
      ->capture_default_str();
  command->callback([request, &context] { run(*request, context); });
}

}  // namespace thresher::cli
