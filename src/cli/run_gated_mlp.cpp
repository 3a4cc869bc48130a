// `thresher run gated-mlp`: one feed-forward layer of a model's checkpoint, dense or MoE.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/activation_options.hpp"
#include "cli/by_name.hpp"
#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/layer_weights.hpp"
#include "cli/operand_options.hpp"
#include "cli/options.hpp"
#include "cli/run_output.hpp"
#include "cli/weight_options.hpp"
#include "core/printable.hpp"
#include "core/remark.hpp"
#include "formats/operands.hpp"
#include "formats/stacks.hpp"
#include "ops/device_memory.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

constexpr const char* gated_mlp_help =
    "The layer's matrices are those of mlp.{gate,up,down}_proj, or of experts those of\n"
    "mlp.experts.N.{gate,up,down}_proj or block_sparse_moe.experts.N.{w1,w3,w2}, in the conventions that\n"
    "`thresher run dual-gemm --help` lists, or gate and up in one, mlp.gate_up_proj or mlp.experts.gate_up_proj, or "
    "the\n"
    "MXFP4 blocks of mlp.experts.{gate_up,down}_proj (gpt-oss), which are held as NVFP4, exactly. What reads x has x\n"
    "[T,hidden size] and for experts, as the model's router chose them, topk_ids (I32 or I64 [T,top k]) and\n"
    "topk_weights (F32 [T,top k]); ids that are no expert's are skipped. Shared experts are left out. config.json\n"
    "beside the weights says which activation it is, unless --activation does. docs/guides/layers.md has examples.";

struct LayerArguments {
  OperandOptions operands;
  std::string checkpoint;
  std::int64_t layer = 0;
  std::vector<std::string> in;
  std::string out;
  std::optional<Format> out_type{};
  std::optional<Format> intermediate{};
  float intermediate_scale = 1.0F;
  std::optional<std::string> prefix{};
  ActivationOptions activation;
};

/// The planner chooses strategies; options choose the numerics of NVFP4 and FP8.
DualGemmOptions options_of(const LayerArguments& arguments) {
  DualGemmOptions options;
  if (arguments.operands.numerics != Numerics::exact) {
    options.knobs.set("numerics", std::string(name(arguments.operands.numerics)));
  }
  return options;
}

/// A 16-bit format: that of x, if x has 16 bits.
Format like(Format x) { return x == Format::fp16 ? Format::fp16 : Format::bf16; }

/// The requested type, else the default of all commands.
Format out_type(const LayerArguments& arguments, Format x, const LayerWeights& weights) {
  return arguments.out_type.value_or(default_out_type(x, weights.gate().format));
}

struct LayerRun {
  std::string strategies;
  std::vector<std::byte> out;
};

LayerRun run_dense(const LayerWeights& weights, const Tensor& x, const Activation& activation, const Device& device,
                   const LayerArguments& arguments) {
  const GatedMlpProblem problem{.tokens = x.shape[0],
                                .hidden_size = weights.hidden_size(),
                                .intermediate_size = weights.intermediate_size(),
                                .x = x.format,
                                .gate_up = weights.gate().format,
                                .intermediate = arguments.intermediate.value_or(like(x.format)),
                                .intermediate_scale = arguments.intermediate_scale,
                                .down = weights.down().format,
                                .out = out_type(arguments, x.format, weights),
                                .activation = activation};
  const GatedMlp layer = plan(device, problem,
                              GatedMlpWeights{.gate = weights.names().is_gated() ? weights.gate().tensor() : Tensor{},
                                              .up = weights.up().tensor(),
                                              .down = weights.down().tensor()},
                              {.gate_up = options_of(arguments), .down = options_of(arguments)});
  const ops::DeviceTensor out(problem.out, {problem.tokens, problem.hidden_size}, device);
  const Workspace workspace(device, layer.workspace_bytes());
  layer.run({}, x, out.tensor(), workspace.data());
  return {fmt::format("{} and {}", layer.gate_up_strategy(), layer.down_strategy()), out.to_host()};
}

LayerRun run_experts(const LayerWeights& weights, const Tensor& x, const Activation& activation,
                     const formats::Checkpoint& in, const Device& device, const LayerArguments& arguments) {
  const formats::Stack ids = formats::load_integers(in, "topk_ids", formats::WideIntegers::nobody);
  const formats::Stack factors = formats::load_numbers(in, "topk_weights");
  if (ids.shape().size() != 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} dimensions, expected 2: [tokens, top k]", ids.source(), ids.shape().size()));
  }
  const ops::DeviceTensor ids_there(ids.view(), device);
  const ops::DeviceTensor factors_there(factors.view(), device);
  const GroupedWeights gate_up = weights.of_gate_up();
  const GroupedWeights down = weights.of_down();
  const MoeProblem problem{.experts = weights.experts(),
                           .tokens = x.shape[0],
                           .top_k = ids.shape()[1],
                           .hidden_size = weights.hidden_size(),
                           .intermediate_size = weights.intermediate_size(),
                           .x = x.format,
                           .gate_up = weights.gate().format,
                           .intermediate = arguments.intermediate.value_or(like(x.format)),
                           .intermediate_scale = arguments.intermediate_scale,
                           .down = weights.down().format,
                           .rows = like(x.format),
                           .out = out_type(arguments, x.format, weights),
                           .activation = activation,
                           .gate_up_bias = gate_up.has_bias(),
                           .down_bias = down.has_bias()};
  const MoeLayer layer =
      plan(device, problem, gate_up, down, {.gate_up = options_of(arguments), .down = options_of(arguments)});
  const ops::DeviceTensor out(problem.out, {problem.tokens, problem.hidden_size}, device);
  const Workspace workspace(device, layer.workspace_bytes());
  layer.run({}, {.x = x, .topk_ids = ids_there.tensor(), .topk_weights = factors_there.tensor(), .out = out.tensor()},
            workspace.data());
  return {fmt::format("{} and {}", layer.gate_up().strategy(), layer.down().strategy()), out.to_host()};
}

void run_gated_mlp(const LayerArguments& arguments) {
  leave_no_temporary_files();
  const formats::Checkpoint model = open_checkpoint({arguments.checkpoint}, arguments.out);
  const formats::Checkpoint in = open_checkpoint(arguments.in, arguments.out);
  const Device device = Device::named(arguments.operands.device);
  const formats::Operand x = formats::load_operand(in, "x", arguments.operands.scale_layout, OperandRole::tokens);
  const formats::FeedForwardNames names = formats::feed_forward_names(model, arguments.layer, arguments.prefix);
  const formats::ModelConfig config = formats::ModelConfig::beside(arguments.checkpoint);
  config.refuse_what_is_not_computed(names);
  const formats::SourcedActivation chosen = arguments.activation.chosen(config, names, arguments.layer);
  const LayerWeights weights(model, names, arguments.operands.scale_layout, device);
  model.refuse_unlisted(names.block + ".");
  config.check_sizes(names, weights.experts(), weights.hidden_size());
  if (const std::string doubt = config.doubt(names, weights.gate().format); !doubt.empty()) {
    print_note(stderr, fmt::format("warning: {}\n", printable(doubt)));
  }
  if (x.k() != weights.hidden_size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} columns, but the layer {} has the hidden size {}", x.source(), x.k(),
                            printable(names.block), weights.hidden_size()));
  }
  arguments.operands.check_scale_layout(x.format(), {weights.gate().format, weights.down().format});
  const ops::DeviceTensor x_there(x.view(), device);
  const LayerRun made = names.has_experts
                            ? run_experts(weights, x_there.tensor(), chosen.activation, in, device, arguments)
                            : run_dense(weights, x_there.tensor(), chosen.activation, device, arguments);
  const Format type = out_type(arguments, x.format(), weights);
  const formats::TensorToWrite result{"out", formats::stored_type(type), {x.rows(), x.k()}, made.out};
  formats::write_safetensors(arguments.out, {&result, 1});
  warn_of_overflow("out", type, made.out);
  fmt::print("layer {} of {}: {}\n", arguments.layer, printable(model.title()), weights.found(described(chosen)));
  fmt::print("out [{}, {}] {}, {}, strategies {} on {}, written to {}\n", x.rows(), x.k(), name(type),
             name(chosen.activation.kind), made.strategies, device.name(), printable(arguments.out));
  if (!names.has_experts && (in.has("topk_ids") || in.has("topk_weights"))) {
    fmt::print("topk_ids and topk_weights of {} are not used: the layer is dense\n", printable(in.title()));
  }
}

}  // namespace

void add_run_gated_mlp(CLI::App& run) {
  const auto arguments = std::make_shared<LayerArguments>();
  CLI::App& command = *run.add_subcommand(
      "gated-mlp", "One feed-forward layer of a checkpoint: down(activation(gate(x)) ∘ up(x)), dense or of experts");
  command.footer(gated_mlp_help);
  command.add_option("--checkpoint", arguments->checkpoint, "Folder, index or safetensors file of the model")
      ->required()
      ->option_text("PATH REQUIRED");
  command.add_option("--layer", arguments->layer, "Which of its layers, counted from 0")
      ->required()
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->option_text("N REQUIRED");
  command
      .add_option("--prefix", arguments->prefix, "What is in front of layers.N. where several layers have that number")
      ->option_text("NAME.");
  add_checkpoint(command, arguments->in, "Where x is, and for experts topk_ids and topk_weights");
  command.add_option("--out", arguments->out, "Safetensors file to write out to")->required();
  add_unscaled_out_type(command, arguments->out_type);
  command
      .add_option("--intermediate", arguments->intermediate,
                  "What lies between gate and up and down; 16 bits like x where it is left out")
      ->transform(by_name(operand_formats))
      ->option_text("fp16|bf16|nvfp4|fp8_tensor|fp8_row|fp8_block");
  command
      .add_option("--intermediate-scale", arguments->intermediate_scale,
                  "The one scale of an intermediate in fp8_tensor, the global scale of one in nvfp4")
      ->option_text("X [1]");
  arguments->operands.add_to(command);
  arguments->activation.add_to(command);
  command.callback([arguments] { run_gated_mlp(*arguments); });
}

}  // namespace thresher::cli
