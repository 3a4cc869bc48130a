// `thresher run gemm`: the plain product of two tensors of safetensors files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/operand_options.hpp"
#include "cli/options.hpp"
#include "cli/run_output.hpp"
#include "cli/weight_options.hpp"
#include "core/printable.hpp"
#include "formats/safetensors.hpp"
#include "formats/stacks.hpp"
#include "formats/weight_parts.hpp"
#include "ops/device_memory.hpp"
#include "thresher/error.hpp"
#include "thresher/gemm.hpp"
#include "thresher/workspace.hpp"

namespace thresher::cli {
namespace {

struct GemmArguments {
  OperandOptions operands;
  std::vector<std::string> in;
  std::string out;
  std::string a = "a";
  std::string b = "b";
  std::string strategy;
  std::optional<Format> out_type{};
  std::optional<Activation> activation{};
};

GemmProblem problem_of(const formats::Stack& a, const formats::Stack& b, bool bias, const GemmArguments& arguments) {
  if (a.shape()[1] != b.shape()[1]) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has K = {}, but {} has K = {}", a.source(), a.shape()[1], b.source(), b.shape()[1]));
  }
  return {.m = a.shape()[0],
          .n = b.shape()[0],
          .k = a.shape()[1],
          .a = a.format(),
          .b = b.format(),
          .out = arguments.out_type.value_or(default_out_type(a.format(), b.format())),
          .bias = bias,
          .activation = arguments.activation};
}

void run_gemm(const GemmArguments& arguments) {
  leave_no_temporary_files();
  const Device device = Device::named(arguments.operands.device);
  const formats::Checkpoint checkpoint = open_checkpoint(arguments.in, arguments.out);
  const ScaleLayout layout = arguments.operands.scale_layout;
  const formats::Stack a = formats::load_stack(checkpoint, arguments.a, formats::StackKind::tokens, layout);
  const formats::Stack b = formats::load_stack(checkpoint, arguments.b, formats::StackKind::matrix, layout);
  const std::string bias_name = formats::WeightParts(checkpoint, arguments.b).bias_name();
  std::optional<formats::Stack> bias;
  if (checkpoint.has(bias_name)) {
    bias = formats::load_numbers(checkpoint, bias_name);
  }
  const GemmProblem problem = problem_of(a, b, bias.has_value(), arguments);
  arguments.operands.check_scale_layout(problem.a, {problem.b});
  GemmOptions how{.strategy = arguments.strategy};
  if (arguments.operands.numerics != Numerics::exact) {
    how.knobs.set("numerics", std::string(name(arguments.operands.numerics)));
  }
  const ops::DeviceTensor a_there(a.view(), device);
  const ops::DeviceTensor b_there(b.view(), device);
  std::optional<ops::DeviceTensor> bias_there;
  GemmWeights weights{.b = b_there.tensor()};
  if (bias) {
    weights.bias = bias_there.emplace(bias->view(), device).tensor();
  }
  const Gemm gemm = plan(device, problem, weights, how);

  const std::vector<std::int64_t> shape{problem.m, problem.n};
  const ops::DeviceTensor c(problem.out, shape, device);
  const Workspace workspace(device, gemm.workspace_bytes());
  gemm.run({}, a_there.tensor(), c.tensor(), workspace.data());
  const std::vector<std::byte> bytes = c.to_host();
  const formats::TensorToWrite result{"c", formats::stored_type(problem.out), shape, bytes};
  formats::write_safetensors(arguments.out, {&result, 1});
  warn_of_overflow("c", problem.out, bytes);
  fmt::print("c [{}, {}] {} = {}a·bᵀ{}{}, strategy {} on {}, written to {}\n", problem.m, problem.n, name(problem.out),
             problem.activation ? "relu2(" : "", problem.bias ? " + bias" : "", problem.activation ? ")" : "",
             gemm.strategy(), device.name(), printable(arguments.out));
  say_what_holds_mxfp4(b);
}

}  // namespace

void add_run_gemm(CLI::App& run) {
  const auto arguments = std::make_shared<GemmArguments>();
  CLI::App& command = *run.add_subcommand("gemm", "c = a·bᵀ, with the bias of b if there is one");
  command.footer(checkpoint_help);
  add_checkpoint(command, arguments->in, "Where a [M,K] and b [N,K] are");
  command.add_option("--out", arguments->out, "Safetensors file to write c to")->required();
  command.add_option("--a", arguments->a, "Tensor of the tokens [M,K]")->option_text("NAME [a]");
  command.add_option("--b", arguments->b, "Tensor of the weights [N,K]; X.bias or X_bias is added")
      ->option_text("NAME [b]");
  arguments->operands.add_to(command);
  command.add_option("--strategy", arguments->strategy, "Default: chosen for the problem");
  add_activation_of_one(command, arguments->activation);
  add_unscaled_out_type(command, arguments->out_type);
  command.callback([arguments] { run_gemm(*arguments); });
}

}  // namespace thresher::cli
