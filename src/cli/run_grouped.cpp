// `thresher run grouped-dual-gemm` and `run grouped-gemm`: the products of all experts on tensors of safetensors files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
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
#include "core/remark.hpp"
#include "formats/stacks.hpp"
#include "formats/weight_parts.hpp"
#include "ops/device_memory.hpp"
#include "thresher/error.hpp"
#include "thresher/grouped_gemm.hpp"
#include "thresher/workspace.hpp"

namespace thresher::cli {
namespace {

constexpr const char* grouped_help =
    "a is [rows,K]; offsets (I32 or I64 [E+1]) say which rows are which expert's. With row_ids ([rows]) row r takes\n"
    "row row_ids[r]/divisor of a [T,K]; with counts ([E]) instead of offsets a is [E,capacity,K]. Weights are named\n"
    "with or without .weight. They are F16 or BF16, or NVFP4: U8 [E,N,K/2] with NAME_scale (F8_E4M3 [E,N,K/16]) and\n"
    "global scales, F32 [E]: NAME_scale_2 that multiplies or, beside NAME_packed, NAME_global_scale that divides.\n"
    "row_weights (F32, one a row of c), and biases [E,N] named NAME.bias or NAME_bias, are used where they\n"
    "are there. Rows of c that no expert owns are 0.";

struct GroupedArguments {
  OperandOptions operands;
  std::vector<std::string> in;
  OutputOptions output;
  std::string a = "a";
  WeightNames names;
  std::string b = "b";
  std::optional<std::int64_t> row_ids_divisor{};
  std::string strategy;
  std::optional<ActivationOptions> activation{};  ///< only for the grouped dual GEMM
};

/// A tensor of the file, loaded to the device.
struct LoadedTensor {
  formats::Stack stack;
  ops::DeviceTensor there;

  LoadedTensor(formats::Stack loaded, const Device& device) : stack(std::move(loaded)), there(stack.view(), device) {}
};
using Maybe = std::unique_ptr<const LoadedTensor>;

Tensor tensor_of(const Maybe& loaded) { return loaded == nullptr ? Tensor{} : loaded->there.tensor(); }

/// The contents of the files.
class Files {
 public:
  Files(const GroupedArguments& arguments, const Device& device)
      : checkpoint_(open_checkpoint(arguments.in, arguments.output.out)),
        device_(device),
        layout_(arguments.operands.scale_layout) {}

  [[nodiscard]] bool has(const std::string& name) const { return checkpoint_.has(name); }
  [[nodiscard]] const formats::Checkpoint& checkpoint() const noexcept { return checkpoint_; }
  [[nodiscard]] Maybe stack(const std::string& name, formats::StackKind kind) const {
    return placed(formats::load_stack(checkpoint_, name, kind, layout_));
  }
  [[nodiscard]] Maybe numbers(const std::string& name) const {
    return has(name) ? placed(formats::load_numbers(checkpoint_, name)) : nullptr;
  }
  [[nodiscard]] Maybe integers(const std::string& name) const {
    return has(name) ? placed(formats::load_integers(checkpoint_, name)) : nullptr;
  }
  /// The bias of these weights.
  [[nodiscard]] Maybe bias(const std::string& name) const {
    return numbers(formats::WeightParts(checkpoint_, name).bias_name());
  }
  void gate_and_up(const WeightNames& names, Maybe& gate, Maybe& up) const {
    const auto weights = [&](const std::string& name) {
      return formats::load_stack(checkpoint_, name, formats::StackKind::weights, layout_);
    };
    formats::Stack of_gate = weights(names.gate_name());
    formats::Stack of_up = weights(names.up_name());
    formats::hold_alike(of_gate, of_up);
    gate = placed(std::move(of_gate));
    up = placed(std::move(of_up));
  }
  /// Gate and up in one tensor with the gate's global scales; those of up go to `up_scales`.
  [[nodiscard]] Maybe fused(const std::string& name, Maybe& up_scales) const {
    const std::string factor = formats::WeightParts(checkpoint_, name).global_scale_name();
    const bool are_two = has(factor) && checkpoint_.find(factor).tensor->shape.size() == 2;
    formats::Stack both = formats::load_stack(checkpoint_, name, formats::StackKind::weights, layout_, are_two ? 2 : 1);
    if (are_two) {
      formats::Stack up = both;
      up.keep_every_second_global_scale(1);
      both.keep_every_second_global_scale(0);
      up_scales = placed(formats::numbers_of(up.global_scales()));
    }
    return placed(std::move(both));
  }

 private:
  [[nodiscard]] Maybe placed(formats::Stack stack) const {
    return std::make_unique<const LoadedTensor>(std::move(stack), device_);
  }

  formats::Checkpoint checkpoint_;
  Device device_;
  ScaleLayout layout_;
};

/// The weights, with their memory.
struct Weights {
  Maybe b1, b2, up_scales, bias1, bias2;
  GroupedWeights given;

  Weights(const Files& files, const GroupedArguments& arguments) {
    if (!arguments.activation) {
      b1 = files.stack(arguments.b, formats::StackKind::weights);
      bias1 = files.bias(arguments.b);
    } else if (!arguments.names.fused_name().empty()) {
      given.order = arguments.names.order();
      b1 = files.fused(arguments.names.fused_name(), up_scales);
      bias1 = files.bias(arguments.names.fused_name());
    } else {
      arguments.names.check_are_two();
      files.gate_and_up(arguments.names, b1, b2);
      bias1 = files.bias(arguments.names.gate_name());
      bias2 = files.bias(arguments.names.up_name());
    }
    given.b1 = tensor_of(b1);
    given.b2 = tensor_of(b2);
    given.bias1 = tensor_of(bias1);
    given.bias2 = tensor_of(bias2);
    given.up_global_scale = static_cast<const float*>(tensor_of(up_scales).data);
  }
};

/// The rows: the tensors of the file determine their layout.
struct RowTensors {
  Maybe a, offsets, counts, row_ids, row_weights;
  RowLayout layout = RowLayout::packed;

  RowTensors(const Files& files, const GroupedArguments& arguments)
      : offsets(files.integers("offsets")),
        counts(files.integers("counts")),
        row_ids(files.integers("row_ids")),
        row_weights(files.numbers("row_weights")) {
    if ((offsets == nullptr) == (counts == nullptr)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("there are {} of offsets [E+1] and counts [E], expected one: offsets of rows that lie one "
                      "behind the other, counts of slots",
                      offsets == nullptr ? "none" : "both"));
    }
    if (arguments.row_ids_divisor && row_ids == nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  "--row-ids-divisor is of gathered rows, and there are no row_ids: leave it out");
    }
    layout = counts != nullptr ? RowLayout::slots : row_ids != nullptr ? RowLayout::gathered : RowLayout::packed;
    a = files.stack(arguments.a, layout == RowLayout::slots ? formats::StackKind::slots : formats::StackKind::tokens);
  }

  [[nodiscard]] std::int64_t rows() const {
    const std::vector<std::int64_t>& shape = a->stack.shape();
    return layout == RowLayout::gathered ? row_ids->stack.shape().front() : shape[layout == RowLayout::slots ? 1 : 0];
  }
};

/// The first words of the output, which name the rows.
const char* rows_in(RowLayout layout) {
  switch (layout) {
    case RowLayout::slots: return "rows in slots";
    case RowLayout::gathered: return "gathered rows";
    default: return "packed rows";
  }
}

GroupedProblem problem_of(const RowTensors& rows, const Weights& weights, const std::optional<Activation>& activation,
                          const GroupedArguments& arguments) {
  const std::vector<std::int64_t>& shape = weights.b1->stack.shape();
  if (shape.back() != rows.a->stack.shape().back()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has K = {}, but {} has K = {}", weights.b1->stack.source(), shape.back(),
                            rows.a->stack.source(), rows.a->stack.shape().back()));
  }
  return {.experts = shape[0],
          .rows = rows.rows(),
          .n = shape[1] / (weights.given.order ? 2 : 1),
          .k = rows.a->stack.shape().back(),
          .tokens = rows.layout == RowLayout::gathered ? rows.a->stack.shape().front() : 0,
          .layout = rows.layout,
          .row_ids_divisor = arguments.row_ids_divisor.value_or(1),
          .a = rows.a->stack.format(),
          .b = weights.b1->stack.format(),
          .out = arguments.output.type(rows.a->stack.format(), weights.b1->stack.format()),
          .activation = activation,
          .bias = weights.given.has_bias(),
          .row_weights = rows.row_weights != nullptr};
}

/// "silu(a·b1ᵀ) ∘ (a·b2ᵀ) with biases, times row_weights": names the optional tensors that were used, too.
std::string computed(const GroupedProblem& problem) {
  return fmt::format(
      "{}{}{}{}", problem.activation ? fmt::format("{}(a·b1ᵀ) ∘ (a·b2ᵀ)", name(problem.activation->kind)) : "a·bᵀ",
      problem.bias ? (problem.activation ? " with biases" : " with a bias") : "",
      problem.row_weights ? ", times row_weights" : "", problem.activation ? constants_text(*problem.activation) : "");
}

void run_grouped(const GroupedArguments& arguments) {
  arguments.output.check();
  leave_no_temporary_files();
  const Device device = Device::named(arguments.operands.device);
  const Files files(arguments, device);
  const RowTensors rows(files, arguments);
  const Weights weights(files, arguments);
  std::optional<formats::SourcedActivation> chosen;
  if (arguments.activation) {
    chosen = arguments.activation->chosen(files.checkpoint(), arguments.names.first_name(), weights.given.has_bias());
  }
  const GroupedProblem problem =
      problem_of(rows, weights, chosen ? std::optional(chosen->activation) : std::nullopt, arguments);
  arguments.operands.check_scale_layout(problem.a, {problem.b});
  GroupedOptions how{.strategy = arguments.strategy};
  if (arguments.operands.numerics != Numerics::exact) {
    how.knobs.set("numerics", std::string(name(arguments.operands.numerics)));
  }
  const GroupedGemm gemm = plan(device, problem, weights.given, how);

  const std::vector<std::int64_t> shape = problem.layout == RowLayout::slots
                                              ? std::vector{problem.experts, problem.rows, problem.n}
                                              : std::vector{problem.rows, problem.n};
  const RunOutput c(arguments.output, problem.out, shape, device);
  const Workspace workspace(device, gemm.workspace_bytes());
  gemm.run({},
           {.a = tensor_of(rows.a),
            .c = c.tensor(),
            .offsets = tensor_of(rows.offsets),
            .counts = tensor_of(rows.counts),
            .row_ids = tensor_of(rows.row_ids),
            .row_weights = tensor_of(rows.row_weights)},
           workspace.data());
  if (const GroupedStatus status = gemm.status({}, workspace.data()); !status.makes_sense()) {
    print_note(stderr, fmt::format("warning: {}: groups were limited to the rows there are\n", status.explain()));
  }

  c.write();
  fmt::print("c [{}] {} of {} experts, {}, {}, strategy {} on {}, written to {}\n", fmt::join(shape, ", "),
             name(problem.out), problem.experts, rows_in(problem.layout), computed(problem), gemm.strategy(),
             device.name(), printable(arguments.output.out));
  if (chosen) {
    say_what_config_chose(*chosen);
  }
  say_what_holds_mxfp4(weights.b1->stack);
  if (weights.b2 != nullptr) {
    say_what_holds_mxfp4(weights.b2->stack);
  }
}

void add_rest(CLI::App& command, const std::shared_ptr<GroupedArguments>& arguments) {
  command.footer(grouped_help);
  add_checkpoint(command, arguments->in, "Where a, offsets and the weights are");
  arguments->output.add_to(command);
  command.add_option("--a", arguments->a, "Tensor of the tokens")->option_text("NAME [a]");
  command.add_option("--row-ids-divisor", arguments->row_ids_divisor, "Top-k where row_ids count token · k + choice")
      ->check(CLI::Range(1, max_extent))
      ->option_text("K [1]");
  arguments->operands.add_to(command);
  command.add_option("--strategy", arguments->strategy, "Default: chosen for the problem");
}

}  // namespace

void add_run_grouped(CLI::App& run) {
  const auto dual = std::make_shared<GroupedArguments>();
  dual->activation.emplace();
  CLI::App& gate_up = *run.add_subcommand(
      "grouped-dual-gemm", "For each expert c = activation(a·b1ᵀ) ∘ (a·b2ᵀ) on its own rows, with its own weights");
  add_rest(gate_up, dual);
  dual->names.add_to(gate_up);
  dual->activation->add_to(gate_up);
  gate_up.callback([dual] { run_grouped(*dual); });

  const auto plain = std::make_shared<GroupedArguments>();
  CLI::App& down =
      *run.add_subcommand("grouped-gemm", "For each expert c = a·bᵀ on its own rows, with its own weights");
  add_rest(down, plain);
  down.add_option("--b", plain->b, "Tensor of the weights [E,N,K]")->option_text("NAME [b]");
  down.callback([plain] { run_grouped(*plain); });
}

}  // namespace thresher::cli
