// `thresher run gated-mlp`: one feed-forward layer of a model's checkpoint, dense or of experts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/by_name.hpp"
#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/operand_options.hpp"
#include "cli/options.hpp"
#include "cli/weight_options.hpp"
#include "core/printable.hpp"
#include "formats/feed_forward.hpp"
#include "formats/operands.hpp"
#include "formats/stacks.hpp"
#include "ops/device_memory.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

constexpr const char* gated_mlp_help =
    "The layer's matrices are those of mlp.{gate,up,down}_proj, or of experts those of "
    "mlp.experts.N.{gate,up,down}_proj\n"
    "or block_sparse_moe.experts.N.{w1,w3,w2}, in the conventions that `thresher run dual-gemm --help` lists, or the\n"
    "MXFP4 blocks of mlp.experts.{gate_up,down}_proj (gpt-oss), which are held as NVFP4, exactly. What reads x has x "
    "[T,hidden\n"
    "size] and for experts, as the model's router chose them, topk_ids (I32 [T,top k]) and topk_weights (F32 [T,top "
    "k]);\n"
    "ids that are no expert's are skipped. Shared experts are left out. docs/layers.md has examples.";

struct LayerArguments {
  OperandOptions operands;
  std::string checkpoint;
  std::int64_t layer = 0;
  std::vector<std::string> in;
  std::string out;
  Format out_type = Format::bf16;
  std::optional<Format> intermediate{};
  float intermediate_scale = 1.0F;
  Activation activation;
  bool has_activation = false;
};

using Extents = std::array<std::int64_t, 2>;

/// A matrix, or those of all experts, in the file and on the device.
struct Placed {
  std::string source;
  Format format;
  Extents extents;     ///< of one matrix
  std::string stored;  ///< the format, and of MXFP4 what holds it
  std::unique_ptr<const ops::DeviceTensor> there;

  Placed(const formats::Operand& operand, const Device& device)
      : source(operand.source()),
        format(operand.format()),
        extents{operand.rows(), operand.k()},
        stored(operand.stored_as()),
        there(std::make_unique<const ops::DeviceTensor>(operand.view(), device)) {}
  Placed(const formats::Stack& stack, const Device& device)
      : source(stack.source()),
        format(stack.format()),
        extents{stack.shape()[1], stack.shape()[2]},
        stored(stack.stored_as()),
        there(std::make_unique<const ops::DeviceTensor>(stack.view(), device)) {}

  [[nodiscard]] const Tensor& tensor() const { return there->tensor(); }
  void expect(Format wanted_format, const Extents& wanted, const Placed& gate) const {
    if (format != wanted_format || extents != wanted) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is {} [{}, {}], expected {} [{}, {}] beside the gate, {}", source, name(format),
                              extents[0], extents[1], name(wanted_format), wanted[0], wanted[1], gate.source));
    }
  }
};

/// The layer's matrices on the device.
struct LayerWeights {
  formats::FeedForwardNames names;
  std::vector<Placed> matrices;  ///< gate, up, down; of blocks gate and up in one, down

  LayerWeights(const formats::Checkpoint& checkpoint, const LayerArguments& arguments, const Device& device)
      : names(feed_forward_names(checkpoint, arguments.layer)) {
    const ScaleLayout layout = arguments.operands.scale_layout;
    if (names.has_blocks) {
      load_blocks(checkpoint, device);
    } else if (names.has_experts) {
      load_three(
          [&](std::string formats::FeedForwardMatrices::* of) {
            std::vector<std::string> of_experts;
            for (const formats::FeedForwardMatrices& expert : names.matrices) {
              of_experts.push_back(expert.*of);
            }
            return load_experts(checkpoint, of_experts, layout);
          },
          device);
    } else {
      load_three(
          [&](std::string formats::FeedForwardMatrices::* of) {
            return load_operand(checkpoint, names.matrices.front().*of, layout);
          },
          device);
    }
    if (!names.has_blocks) {
      matrices[1].expect(gate().format, gate().extents, gate());
    }
    down().expect(down().format, {hidden_size(), intermediate_size()}, gate());
  }

  [[nodiscard]] const Placed& gate() const { return matrices.front(); }
  [[nodiscard]] const Placed& down() const { return matrices.back(); }
  [[nodiscard]] std::int64_t hidden_size() const { return gate().extents[1]; }
  [[nodiscard]] std::int64_t intermediate_size() const { return gate().extents[0] / (names.has_blocks ? 2 : 1); }
  [[nodiscard]] std::int64_t experts() const { return names.has_experts ? gate().tensor().shape[0] : 0; }
  [[nodiscard]] GroupedWeights of_gate_up() const {
    GroupedWeights weights{.b1 = gate().tensor()};
    if (names.has_blocks) {
      weights.order = GateUpOrder::interleaved;
      weights.bias1 = bias(0);
    } else {
      weights.b2 = matrices[1].tensor();
    }
    return weights;
  }
  [[nodiscard]] GroupedWeights of_down() const {
    return {.b1 = down().tensor(), .bias1 = names.has_blocks ? bias(1) : Tensor{}};
  }
  /// "model.layers.3.mlp, 8 experts, gate and up [16, 32] bf16, down [32, 16] bf16".
  [[nodiscard]] std::string found() const {
    return fmt::format("{}, {}, gate and up [{}, {}] {}, down [{}, {}] {}{}", printable(names.block),
                       names.has_experts ? fmt::format("{} expert{}", experts(), experts() == 1 ? "" : "s") : "dense",
                       intermediate_size(), hidden_size(), stored_gate_up(), hidden_size(), intermediate_size(),
                       down().stored, names.left_out.empty() ? "" : fmt::format("; {} left out", names.left_out));
  }

 private:
  template <class Load>
  void load_three(const Load& load, const Device& device) {
    auto gate = load(&formats::FeedForwardMatrices::gate);
    auto up = load(&formats::FeedForwardMatrices::up);
    formats::hold_alike(gate, up);
    matrices.emplace_back(gate, device);
    matrices.emplace_back(up, device);
    matrices.emplace_back(load(&formats::FeedForwardMatrices::down), device);
  }
  [[nodiscard]] std::string stored_gate_up() const {
    const std::string& up = matrices[names.has_blocks ? 0 : 1].stored;
    return gate().stored == up ? up : fmt::format("{} and {}", gate().stored, up);
  }
  void load_blocks(const formats::Checkpoint& checkpoint, const Device& device) {
    for (const std::string& name : {names.gate_up, names.down}) {
      matrices.emplace_back(load_mxfp4_blocks(checkpoint, name), device);
      const formats::Stack bias = load_numbers(checkpoint, name + "_bias");
      if (bias.shape() != std::vector{matrices.back().tensor().shape[0], matrices.back().extents[0]}) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} is not [{}, {}], as it must be beside {}", bias.source(),
                                matrices.back().tensor().shape[0], matrices.back().extents[0], matrices.back().source));
      }
      biases_.push_back(std::make_unique<const ops::DeviceTensor>(bias.view(), device));
    }
    if (gate().extents[0] % 2 != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} has {} rows, expected an even number: gate and up in turn", gate().source,
                              gate().extents[0]));
    }
    if (matrices[1].tensor().shape[0] != matrices[0].tensor().shape[0]) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} has {} experts, but {} has {}", matrices[1].source, matrices[1].tensor().shape[0],
                              matrices[0].source, matrices[0].tensor().shape[0]));
    }
  }
  [[nodiscard]] Tensor bias(std::size_t matrix) const { return biases_[matrix]->tensor(); }

  std::vector<std::unique_ptr<const ops::DeviceTensor>> biases_;  ///< of blocks alone
};

/// Strategies are chosen; how NVFP4 and FP8 are computed is asked for.
DualGemmOptions options_of(const LayerArguments& arguments) {
  DualGemmOptions options;
  if (arguments.operands.numerics != Numerics::exact) {
    options.knobs.set("numerics", std::string(name(arguments.operands.numerics)));
  }
  return options;
}

/// In 16 bits, like x where that is.
Format like(Format x) { return x == Format::fp16 ? Format::fp16 : Format::bf16; }

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
                                .out = arguments.out_type,
                                .activation = activation};
  const GatedMlp layer =
      plan(device, problem,
           GatedMlpWeights{
               .gate = weights.gate().tensor(), .up = weights.matrices[1].tensor(), .down = weights.down().tensor()},
           {.gate_up = options_of(arguments), .down = options_of(arguments)});
  const ops::DeviceTensor out(problem.out, {problem.tokens, problem.hidden_size}, device);
  const Workspace workspace(device, layer.workspace_bytes());
  layer.run({}, x, out.tensor(), workspace.data());
  return {fmt::format("{} and {}", layer.gate_up_strategy(), layer.down_strategy()), out.to_host()};
}

LayerRun run_experts(const LayerWeights& weights, const Tensor& x, const Activation& activation,
                     const formats::Checkpoint& in, const Device& device, const LayerArguments& arguments) {
  const formats::Stack ids = formats::load_integers(in, "topk_ids");
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
                           .out = arguments.out_type,
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
  const LayerWeights weights(model, arguments, device);
  if (x.k() != weights.hidden_size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} columns, but the layer {} has the hidden size {}", x.source(), x.k(),
                            printable(weights.names.block), weights.hidden_size()));
  }
  arguments.operands.check_scale_layout({x.format(), weights.gate().format, weights.down().format});
  Activation activation = arguments.activation;
  if (weights.names.has_blocks && !arguments.has_activation) {
    activation.kind = ActivationKind::swiglu_clamped;  // what gpt-oss computes
  }
  const ops::DeviceTensor x_there(x.view(), device);
  const LayerRun made = weights.names.has_experts
                            ? run_experts(weights, x_there.tensor(), activation, in, device, arguments)
                            : run_dense(weights, x_there.tensor(), activation, device, arguments);
  const formats::TensorToWrite result{"out", formats::stored_type(arguments.out_type), {x.rows(), x.k()}, made.out};
  formats::write_safetensors(arguments.out, {&result, 1});
  fmt::print("layer {} of {}: {}\n", arguments.layer, printable(model.title()), weights.found());
  fmt::print("out [{}, {}] {}, {}, strategies {} on {}, written to {}\n", x.rows(), x.k(), name(arguments.out_type),
             name(activation.kind), made.strategies, device.name(), printable(arguments.out));
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
  add_checkpoint(command, arguments->in, "Where x is, and for experts topk_ids and topk_weights");
  command.add_option("--out", arguments->out, "Safetensors file to write out to")->required();
  command.add_option("--out-type", arguments->out_type, "Type of out")
      ->transform(by_name(unscaled_output_formats))
      ->option_text("fp16|bf16|fp32 [bf16]");
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
  const ActivationParameters parameters = add_activation(command, arguments->activation);
  command.callback([arguments, parameters, &command] {
    arguments->has_activation = command.get_option("--activation")->count() > 0;
    check_parameters(parameters, arguments->activation);
    run_gated_mlp(*arguments);
  });
}

}  // namespace thresher::cli
