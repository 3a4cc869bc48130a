// `thresher run`: one operation on named tensors of a safetensors file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/activation_options.hpp"
#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/operand_options.hpp"
#include "cli/options.hpp"
#include "cli/run_output.hpp"
#include "cli/weight_options.hpp"
#include "core/printable.hpp"
#include "formats/operands.hpp"
#include "ops/device_memory.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

struct RunOptions {
  OperandOptions operands;
  std::vector<std::string> in;
  std::string a = "a";
  WeightNames names;
  std::string weights;  ///< prepacked ones; empty: those in `in`
  OutputOptions output;
  std::string strategy;
  ActivationOptions activation;
};

/// The problem that the three operands define.
DualGemmProblem problem_of(const formats::Operand& a, const formats::Operand& gate, const formats::Operand& up,
                           const Activation& activation, const RunOptions& options) {
  if (a.k() != gate.k()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has K = {}, but '{}' has K = {}: they must agree",
                                                         a.source(), a.k(), options.names.gate(), gate.k()));
  }
  if (up.rows() != gate.rows() || up.k() != gate.k()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is [{}, {}], expected [{}, {}] like {}", up.source(), up.rows(), up.k(), gate.rows(),
                            gate.k(), options.names.gate()));
  }
  if (up.format() != gate.format()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}, expected {} like {}", up.source(),
                                                         name(up.format()), name(gate.format()), options.names.gate()));
  }
  return {.m = a.rows(),
          .n = gate.rows(),
          .k = a.k(),
          .a = a.format(),
          .b = gate.format(),
          .out = options.output.type(a.format(), gate.format()),
          .activation = activation};
}

void run_planned(const DualGemm& gemm, const formats::Operand& a, const Device& device, const RunOptions& options) {
  const DualGemmProblem& problem = gemm.problem();
  const ops::DeviceTensor a_there(a.view(), device);
  const RunOutput c(options.output, problem.out, {problem.m, problem.n}, device);
  const Workspace workspace(device, gemm.workspace_bytes());
  gemm.run({}, a_there.tensor(), c.tensor(), workspace.data());
  c.write();
  fmt::print("c [{}, {}] {} = {}(a·b1ᵀ) ∘ (a·b2ᵀ){}, strategy {} on {}, written to {}\n", problem.m, problem.n,
             name(problem.out), name(problem.activation.kind), constants_text(problem.activation), gemm.strategy(),
             device.name(), printable(options.output.out));
}

void run_packed(const formats::Operand& a, const Device& device, const RunOptions& options) {
  const PackedWeights weights = load_packed(device, options.weights);
  if (a.k() != weights.k()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has K = {}, but the weights of {} have {}", a.source(),
                                                         a.k(), options.weights, weights.k()));
  }
  const DualGemmProblem problem{.m = a.rows(),
                                .n = weights.n(),
                                .k = a.k(),
                                .a = a.format(),
                                .b = weights.format(),
                                .out = options.output.type(a.format(), weights.format()),
                                .activation = options.activation.given()};
  run_planned(plan(device, problem, weights, {.strategy = options.strategy}), a, device, options);
}

void run_dual_gemm(const RunOptions& options) {
  leave_no_temporary_files();
  const formats::Checkpoint checkpoint = open_checkpoint(options.in, options.output.out);
  const formats::Operand a =
      formats::load_operand(checkpoint, options.a, options.operands.scale_layout, OperandRole::tokens);
  const Device device = Device::named(options.operands.device);
  if (!options.weights.empty()) {
    refuse_overwriting("--out", options.output.out, options.weights);
    options.operands.check_scale_layout(a.format(), {});
    run_packed(a, device, options);
    return;
  }
  const auto [gate, up] = options.names.load(checkpoint, options.operands.scale_layout);
  options.operands.check_scale_layout(a.format(), {gate.format(), up.format()});
  const formats::SourcedActivation chosen = options.activation.chosen(checkpoint, options.names.first_name());
  const DualGemmProblem problem = problem_of(a, gate, up, chosen.activation, options);
  const ops::DeviceTensor gate_there(gate.view(), device);
  const ops::DeviceTensor up_there(up.view(), device);
  DualGemmOptions how{.strategy = options.strategy};
  if (options.operands.numerics != Numerics::exact) {
    how.knobs.set("numerics", std::string(name(options.operands.numerics)));
  }
  run_planned(plan(device, problem, gate_there.tensor(), up_there.tensor(), how), a, device, options);
  say_what_config_chose(chosen);
  say_what_holds_mxfp4(gate, up);
}

void add_run_dual_gemm(CLI::App& run) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *run.add_subcommand(
      "dual-gemm", "c = activation(a·b1ᵀ) ∘ (a·b2ᵀ): b1 is the gate, to which the activation is applied, b2 is up");
  command.footer(checkpoint_help);
  add_checkpoint(command, options->in, "Where a [M,K], gate and up are");
  options->output.add_to(command);
  command.add_option("--a", options->a, "Tensor of the tokens [M,K]")->option_text("NAME [a]");
  CLI::Option* const weights = command.add_option("--weights", options->weights,
                                                  "Packed weights that `thresher pack` wrote, instead of gate and up");
  options->names.add_to(command, weights);
  options->operands.add_to(command);
  weights->excludes(command.get_option("--numerics"));
  command.add_option("--strategy", options->strategy, "Default: chosen for the problem");
  options->activation.add_to(command);
  command.callback([options] {
    options->output.check();
    run_dual_gemm(*options);
  });
}

}  // namespace

void add_run(CLI::App& app, Context&) {
  CLI::App& run = *app.add_subcommand("run", "Runs one operation on the tensors of a safetensors file");
  run.require_subcommand(1);
  add_run_dual_gemm(run);
  add_run_gemm(run);
  add_run_attention(run);
  add_run_grouped(run);
  add_run_gated_mlp(run);
}

}  // namespace thresher::cli
