// `thresher plan`: predicts the launch for a problem on a card, its time and its bottleneck.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <vector>

#include "arena/predictions/calibration_file.hpp"
#include "arena/predictions/predicted.hpp"
#include "cli/by_name.hpp"
#include "cli/operand_options.hpp"
#include "cli/options.hpp"
#include "cli/planner_commands.hpp"
#include "cli/problem_option.hpp"
#include "cli/run_output.hpp"
#include "core/integers.hpp"
#include "ops/forecast.hpp"
#include "ops/validate_attention.hpp"
#include "ops/validate_product.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

using strategies::gemm::Product;

/// The options of every operation.
struct PlanArguments {
  std::string device = "H200";
  std::string strategy{};
  std::string knobs{};
  std::string calibration{};
  std::size_t top = 5;
  bool sustained = false;
  bool refused = false;
  bool help_knobs = false;
  bool json = false;

  void add_to(CLI::App& command) {
    add_device_table(command, device, "The card, which need not be here")->capture_default_str();
    command.add_option("--strategy", strategy, "This one alone");
    command.add_option("--knobs", knobs, "Kept in every choice, as in \"stages=3 split_k=2\"");
    command.add_option("--calibration", calibration,
                       "Parameters that `thresher calibrate` wrote; its own file if not given");
    command.add_option("--top", top, "How many to show")->capture_default_str();
    command.add_flag("--sustained", sustained, "At the clock of a hot card");
    command.add_flag("--refused", refused, "Show what cannot run, and why");
    CLI::Option* const knobs_alone =
        command.add_flag("--help-knobs", help_knobs, "List every GPU strategy with its knobs and what they may be");
    command.add_flag("--json", json, "For machines")->excludes(knobs_alone);
  }
};

struct AttentionArguments {
  AttentionProblem problem{};
  std::int64_t total_queries = 0;
  bool bf16 = false;
  bool fp8_keys = false;
  bool fp8_queries = false;
  bool dependent_launch = false;
};

/// --help-knobs lists the knobs of every strategy, for any problem.
void refuse_beside_help_knobs(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0 && option->get_name() != "--help-knobs") {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--help-knobs lists the knobs of every strategy and takes nothing else: leave out {}",
                              option->get_name()));
    }
  }
}

/// Puts the keys into a paged KV cache whose pool just holds all sequences, which have `queries` in total.
void put_keys_in_pages(AttentionProblem& problem, std::int64_t queries) {
  problem.variable_length = true;
  problem.queries = queries;
  problem.pages = size_product(problem.batch, ceil_div(problem.keys, problem.page_size));
}

std::string title(const planner::Choice& choice) {
  const std::string knobs = choice.knobs.text();
  return choice.strategy + (knobs.empty() ? "" : " ") + knobs;
}

nlohmann::json to_json(const planner::Choice& choice) {
  nlohmann::json json{{"strategy", choice.strategy}, {"knobs", choice.knobs.text()}};
  if (choice.prediction) {
    const planner::Prediction& prediction = *choice.prediction;
    const planner::TimeParts& parts = prediction.parts;
    json["predicted_us"] = prediction.us();
    json["bound"] = planner::name(prediction.bound);
    json["parts_us"] = {{"launch", parts.launch_us},     {"fill", parts.fill_us},         {"main_loop", parts.main_us},
                        {"exchange", parts.exchange_us}, {"epilogue", parts.epilogue_us}, {"passes", parts.passes_us}};
    if (prediction.interval) {
      json["low_us"] = prediction.interval->low_us;
      json["high_us"] = prediction.interval->high_us;
    }
    json["blocks"] = prediction.blocks;
    json["busy_share"] = prediction.busy_share;
    json["useful_share"] = prediction.useful_share;
    json["calibrated"] = prediction.calibrated;
    json["why"] = prediction.why;
  }
  return json;
}

/// A prediction is an interval where the card's constants are intervals: unmeasured.
bool has_intervals(const planner::Choices& choices) {
  return !choices.ranked.empty() && choices.ranked.front().prediction && choices.ranked.front().prediction->interval;
}

void print_constants(const DeviceSpec& device) {
  fmt::print("constants of a {}, none of them measured by this project:\n", device.name);
  for (const TensorUnitField& field : tensor_unit_fields) {
    const Constant& constant = device.tensor.*field.member;
    fmt::print("  {}: {:.6g} ({:.6g} to {:.6g}) {}, {}: {}\n", field.name, constant.value, constant.low, constant.high,
               field.unit, name(constant.trust), constant.source);
  }
}

void print_json(const planner::Choices& choices, const PlanArguments& arguments) {
  nlohmann::json json{{"device", device_spec(arguments.device).name},
                      {"choices", nlohmann::json::array()},
                      {"refused", nlohmann::json::array()}};
  for (const planner::Choice& choice : choices.ranked) {
    json["choices"].push_back(to_json(choice));
  }
  for (const planner::RefusedStrategy& refused : choices.refused) {
    json["refused"].push_back({{"strategy", refused.strategy}, {"obstacles", refused.infeasible_reasons}});
  }
  if (has_intervals(choices)) {
    json["constants"] = nlohmann::json::parse(arena::constants_json(device_spec(arguments.device)));
  }
  fmt::print("{}\n", json.dump(1));
}

void print_choice(const planner::Choice& choice) {
  if (choice.prediction) {
    fmt::print("{:>8.1f} us  {}\n             {}\n", choice.prediction->us(), title(choice), choice.prediction->why);
  } else {
    fmt::print("       ? us  {}\n             the planner has no words for its work\n", title(choice));
  }
}

void print_table(const planner::Choices& choices, const PlanArguments& arguments) {
  const std::size_t shown = std::min(arguments.top, choices.ranked.size());
  for (std::size_t i = 0; i < shown; ++i) {
    print_choice(choices.ranked[i]);
  }
  if (choices.ranked.size() > shown) {
    fmt::print("({} more can run; --top shows them)\n", choices.ranked.size() - shown);
  }
  if (choices.ranked.empty() && choices.refused.empty()) {
    fmt::print("no strategy of a GPU computes this\n");
  }
  if (arguments.refused || choices.ranked.empty()) {
    for (const planner::RefusedStrategy& refused : choices.refused) {
      for (const std::string& obstacle : refused.infeasible_reasons) {
        fmt::print("cannot run   {}\n             {}\n", refused.strategy, obstacle);
      }
    }
  } else if (!choices.refused.empty()) {
    fmt::print("({} strategies cannot run it; --refused says why)\n", choices.refused.size());
  }
  if (has_intervals(choices)) {
    print_constants(device_spec(arguments.device));
  }
}

/// Lists choices in the order of `plan`, which only knows the built-in parameters. The times use the requested
/// calibration and clock.
template <class Problem, class Options>
void plan(const Problem& problem, const Options& options, const PlanArguments& arguments, Context& context) {
  const DeviceSpec& device = device_spec(arguments.device);
  const planner::Calibration calibration = arena::load_calibration(arguments.calibration, device.name).calibration;
  planner::Choices choices = ops::choices(problem, options, device);
  for (planner::Choice& choice : choices.ranked) {
    if (choice.prediction) {
      choice.prediction =
          planner::predict(choice.work, device, calibration, arguments.sustained ? Clocks::sustained : Clocks::burst);
    }
  }
  arguments.json ? print_json(choices, arguments) : print_table(choices, arguments);
  if (choices.ranked.empty()) {
    context.exit_status = gate_failed;
  }
}

template <class Problem>
void print_knobs(strategies::Strategies<Problem> all) {
  for (const strategies::Strategy<Problem>* const strategy : all) {
    fmt::print("{}: {}\n", strategy->name(), strategy->summary());
    for (const strategies::KnobHelp& knob : strategy->knobs()) {
      fmt::print("  {:<20} {}: {}\n", knob.name, knob.help, fmt::join(knob.allowed, ", "));
    }
  }
}

void add_attention(CLI::App& plan_command, Context& context) {
  const auto arguments = std::make_shared<PlanArguments>();
  const auto asked = std::make_shared<AttentionArguments>();
  AttentionProblem& problem = asked->problem;
  CLI::App* command = plan_command.add_subcommand("attention", "The same of an attention");
  const CLI::Range extents(1, max_extent);
  command->add_option("--batch", problem.batch, "Sequences")->capture_default_str()->check(extents);
  command->add_option("--heads", problem.heads, "Heads of queries")->capture_default_str()->check(extents);
  CLI::Option* const kv_heads = command->add_option("--kv-heads", problem.kv_heads, "Heads of keys; as --heads");
  kv_heads->check(extents);
  CLI::Option* const queries = command->add_option("--queries", problem.queries, "Queries of a sequence");
  queries->check(extents);
  CLI::Option* const total = command->add_option("--total-queries", asked->total_queries,
                                                 "Queries of all sequences together, with a paged KV cache");
  total->check(extents)->excludes(queries);
  CLI::Option* const keys = command->add_option("--keys", problem.keys, "Keys of a sequence; as --queries");
  keys->check(extents);
  command->add_option("--head-dim", problem.head_dim, "Of queries and keys")
      ->capture_default_str()
      ->check(CLI::IsMember(ops::head_dims));
  command->add_option("--value-dim", problem.value_dim, "Of values and the output; as --head-dim")
      ->check(CLI::IsMember(ops::value_dims));
  CLI::Option* const page_size =
      command->add_option("--page-size", problem.page_size, "Keys of a page; none are in pages when left out");
  page_size->check(extents);
  command->add_flag("--fp8-keys", asked->fp8_keys, "Keys and values in FP8");
  command->add_flag("--fp8-queries", asked->fp8_queries, "Queries in FP8 too");
  command->add_flag("--sinks", problem.sinks, "With a sink for each head");
  command->add_flag("--causal", problem.causal, "A query sees no key behind it");
  command->add_flag("--bf16", asked->bf16, "In bf16 instead of fp16");
  command->add_flag("--dependent-launch", asked->dependent_launch, "Started while the call before it ends");
  arguments->add_to(*command);
  command->callback([arguments, asked, command, kv_heads, queries, total, keys, page_size, &context] {
    refuse_words_before(*command);
    if (arguments->help_knobs) {
      refuse_beside_help_knobs(*command);
      print_knobs<AttentionProblem>(strategies::attention::registry().of(DeviceKind::cuda));
      return;
    }
    if (queries->count() + total->count() == 0) {
      throw Error(ErrorCode::invalid_argument, "plan attention: --queries is missing: say how many a sequence has");
    }
    if (total->count() > 0 && (page_size->count() == 0 || keys->count() == 0)) {
      throw Error(ErrorCode::invalid_argument,
                  "plan attention: --total-queries is given without --page-size or --keys, expected all three");
    }
    AttentionProblem& wanted = asked->problem;
    wanted.kv_heads = kv_heads->count() > 0 ? wanted.kv_heads : wanted.heads;
    wanted.keys = keys->count() > 0 ? wanted.keys : wanted.queries;
    wanted.format = asked->bf16 ? Format::bf16 : Format::fp16;
    if (asked->fp8_keys || asked->fp8_queries) {
      wanted.kv_format = Format::fp8_e4m3;
    }
    if (asked->fp8_queries) {
      wanted.q_format = Format::fp8_e4m3;
    }
    if (wanted.page_size > 0) {
      put_keys_in_pages(wanted, total->count() > 0 ? asked->total_queries : size_product(wanted.batch, wanted.queries));
    }
    ops::validate(wanted);
    AttentionOptions options{.strategy = arguments->strategy, .knobs = Knobs::parse(arguments->knobs)};
    options.dependent_launch = asked->dependent_launch;
    plan(wanted, options, *arguments, context);
  });
}

void add_formats(CLI::App& command, Format& a, Format& b, std::optional<Format>& out) {
  for (const auto& [option, format, what] :
       {std::tuple{"--a", &a, "Format of the tokens"}, std::tuple{"--b", &b, "Format of the weights"}}) {
    command.add_option(option, *format, what)
        ->transform(by_name(operand_formats))
        ->option_text("fp16|bf16|nvfp4|fp8_tensor|fp8_row|fp8_block");
  }
  add_out_type(command, out);
}

void require_all(const CLI::App& command, const std::vector<CLI::Option*>& needed) {
  for (const CLI::Option* option : needed) {
    if (option->count() == 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("plan {}: {} is missing", command.get_name(), option->get_name()));
    }
  }
}

void add_gemm(CLI::App& plan_command, Context& context) {
  const auto arguments = std::make_shared<PlanArguments>();
  const auto asked =
      std::make_shared<GemmProblem>(GemmProblem{.a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
  CLI::App* command = plan_command.add_subcommand("gemm", "The same of a plain product");
  const CLI::Range extents(1, max_extent);
  const std::vector<CLI::Option*> needed{command->add_option("--m", asked->m, "Rows")->check(extents),
                                         command->add_option("--n", asked->n, "Outputs")->check(extents),
                                         command->add_option("--k", asked->k, "Inputs")->check(extents)};
  const auto out_type = std::make_shared<std::optional<Format>>();
  add_formats(*command, asked->a, asked->b, *out_type);
  arguments->add_to(*command);
  command->callback([arguments, asked, command, needed, out_type, &context] {
    refuse_words_before(*command);
    if (arguments->help_knobs) {
      refuse_beside_help_knobs(*command);
      print_knobs<strategies::gemm::ProductProblem>(strategies::gemm::strategies_of(Product::gemm, DeviceKind::cuda));
      return;
    }
    require_all(*command, needed);
    asked->out = out_type->value_or(default_out_type(asked->a, asked->b));
    const strategies::gemm::ProductProblem problem(*asked);
    ops::validate(problem);
    const GemmOptions options{.strategy = arguments->strategy, .knobs = Knobs::parse(arguments->knobs)};
    plan(problem, options, *arguments, context);
  });
}

/// The grouped dual GEMM, or the grouped GEMM.
void add_grouped(CLI::App& plan_command, const char* name, const char* description, bool is_dual, Context& context) {
  const auto arguments = std::make_shared<PlanArguments>();
  const auto asked = std::make_shared<GroupedProblem>(
      GroupedProblem{.experts = 0, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
  if (is_dual) {
    asked->activation = Activation{};
  }
  GroupedProblem& problem = *asked;
  CLI::App* command = plan_command.add_subcommand(name, description);
  const CLI::Range extents(1, max_extent);
  std::vector<CLI::Option*> needed{
      command->add_option("--experts", problem.experts, "Experts")->check(extents),
      command->add_option("--rows", problem.rows, "Rows of all experts together; with slots: of one")->check(extents),
      command->add_option("--n", problem.n, "Outputs")->check(extents),
      command->add_option("--k", problem.k, "Inputs")->check(extents)};
  CLI::Option* const tokens = command->add_option("--tokens", problem.tokens, "Gathered: rows of a")->check(extents);
  command->add_option("--layout", problem.layout, "How the rows of the experts lie")
      ->transform(by_name(all_row_layouts))
      ->option_text("packed|slots|gathered");
  command->add_option("--expected-rows", problem.expected_rows, "Rows that experts own in a usual call")
      ->check(extents);
  const auto out_type = std::make_shared<std::optional<Format>>();
  add_formats(*command, problem.a, problem.b, *out_type);
  arguments->add_to(*command);
  command->callback([arguments, asked, command, needed, tokens, out_type, name, &context] {
    refuse_words_before(*command);
    if (arguments->help_knobs) {
      refuse_beside_help_knobs(*command);
      print_knobs<strategies::gemm::ProductProblem>(
          strategies::gemm::strategies_of(Product::grouped, DeviceKind::cuda));
      return;
    }
    require_all(*command, needed);
    asked->out = out_type->value_or(default_out_type(asked->a, asked->b));
    if (asked->layout == RowLayout::gathered) {
      asked->tokens = asked->tokens == 0 ? asked->rows : asked->tokens;
    } else if (tokens->count() > 0) {
      throw Error(ErrorCode::invalid_argument, fmt::format("plan {}: --tokens is of --layout gathered", name));
    }
    ops::validate(*asked);
    const GroupedOptions options{.strategy = arguments->strategy, .knobs = Knobs::parse(arguments->knobs)};
    plan(*asked, options, *arguments, context);
  });
}

}  // namespace

void refuse_words_before(const CLI::App& command) {
  for (const CLI::Option* option : command.get_parent()->get_options()) {
    if (option->count() > 0) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("plan {}: {} stands before {}, where it is of the dual GEMM: put it behind, or leave it out",
                      command.get_name(), option->get_name(), command.get_name()));
    }
  }
}

void add_plan(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PlanArguments>();
  const auto problem = std::make_shared<ProblemArgument>();
  CLI::App* command =
      app.add_subcommand("plan", "Says what `plan` would launch, how long it would take and why; needs no GPU");
  problem->add_to(*command);
  command->get_option("problem")->required(false);
  arguments->add_to(*command);
  add_attention(*command, context);
  add_gemm(*command, context);
  add_grouped(*command, "grouped-dual-gemm", "The same of gate and up of all experts", true, context);
  add_grouped(*command, "grouped-gemm", "The same of one matrix of each expert", false, context);
  add_plan_layers(*command);
  command->callback([arguments, problem, command, &context] {
    if (!command->get_subcommands().empty()) {
      return;
    }
    if (arguments->help_knobs) {
      refuse_beside_help_knobs(*command);
      print_knobs<strategies::gemm::ProductProblem>(
          strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda));
      return;
    }
    const DualGemmOptions options{.strategy = arguments->strategy, .knobs = Knobs::parse(arguments->knobs)};
    plan(problem->problem(), options, *arguments, context);
  });
}

}  // namespace thresher::cli
