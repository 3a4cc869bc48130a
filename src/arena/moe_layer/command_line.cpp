// Problems of layers on a command line.
#include <algorithm>

#include "arena/moe_layer/operation.hpp"
#include "arena/moe_layer/task.hpp"
#include "arena/operation/command_line.hpp"

namespace thresher::arena {
namespace {

template <class Set>
ProblemOption extent(const char* name, const char* help, const Set& set) {
  return {.name = name, .help = help, .is_extent = true, .set = [set](Problem& problem, const std::string& text) {
            auto& task = problem.as<LayerTask>();
            set(task, std::stoll(text));
            task = completed(std::move(task));
          }};
}
ProblemOption extent(const char* name, const char* help, std::int64_t MoeProblem::* place) {
  return extent(name, help, [place](LayerTask& task, std::int64_t value) { task.problem.*place = value; });
}

template <class Formats>
ProblemOption format(const char* name, const char* help, const Formats& formats, Format MoeProblem::* place) {
  return {.name = name,
          .help = help,
          .allowed = names_of(formats),
          .set = [&formats, place](Problem& problem, const std::string& text) {
            auto& task = problem.as<LayerTask>();
            task.problem.*place = value_of(formats, text);
            task = fitted(std::move(task));
          }};
}

}  // namespace

/// Ragged beside every tile; some choices are skipped, and some tokens have an expert twice.
Problem LayerOperation::example() const {
  if (is_dense_) {
    return problem_of(gated_mlp_task({.tokens = 70, .hidden_size = 136, .intermediate_size = 72}));
  }
  LayerTask task;
  task.problem = {.experts = 4, .tokens = 21, .top_k = 3, .hidden_size = 136, .intermediate_size = 72};
  task.total_experts = task.problem.experts;
  task.skipped = 7;
  task.repeated = 5;
  return problem_of(std::move(task));
}

std::vector<ProblemOption> LayerOperation::options() const {
  std::vector<ProblemOption> all{
      format("--x", "format of x; bf16 when left out", operand_formats, &MoeProblem::x),
      format("--gate-up", "format of gate and up; bf16 when left out", operand_formats, &MoeProblem::gate_up),
      format("--intermediate", "format of what lies between the products; bf16 when left out", intermediate_formats,
             &MoeProblem::intermediate),
      format("--down", "format of down; bf16 when left out", operand_formats, &MoeProblem::down),
      format("--out", "format of out; bf16 when left out", unscaled_output_formats, &MoeProblem::out),
      {.name = "--activation",
       .help = "what is applied to the gate; silu when left out",
       .allowed = names_of(all_activation_kinds),
       .set =
           [](Problem& problem, const std::string& text) {
             problem.as<LayerTask>().problem.activation.kind = value_of(all_activation_kinds, text);
           }},
      extent("--tokens", "tokens", &MoeProblem::tokens),
      extent("--hidden-size", "columns of x and of out", &MoeProblem::hidden_size),
      extent("--intermediate-size", "rows of gate and of up", &MoeProblem::intermediate_size)};
  if (!is_dense_) {
    all.push_back(extent("--experts", "experts of the layer", [](LayerTask& task, std::int64_t value) {
      task.problem.experts = task.total_experts = value;
      task.problem.top_k = std::min(task.problem.top_k, value);
    }));
    all.push_back(extent("--of-experts", "experts that there are, of which the others are somewhere else",
                         [](LayerTask& task, std::int64_t value) { task.total_experts = value; }));
    all.push_back(extent("--top-k", "choices of a token, at most as many as experts", &MoeProblem::top_k));
  }
  return all;
}

}  // namespace thresher::arena
