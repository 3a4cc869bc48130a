// Problems of the grouped products on a command line: every expert has as many rows, but for one that has none; and of
// the GEMM.
#include "arena/operation/command_line.hpp"
#include "arena/grouped_gemm/operation.hpp"
#include "arena/grouped_gemm/task.hpp"

namespace thresher::arena {
namespace {

GroupedTask& task_of(Problem& problem) { return problem.as<GroupedTask>(); }

/// Sets something and makes the rest fit.
template <class Set>
ProblemOption option(const char* name, const char* help, bool is_extent, const Set& set) {
  return {.name = name, .help = help, .is_extent = is_extent, .set = [set](Problem& problem, const std::string& text) {
            GroupedTask& task = task_of(problem);
            set(task, std::stoll(text));
            task = completed(std::move(task));
          }};
}

ProblemOption format(const char* name, const char* help, std::vector<std::string> allowed,
                     void (*set)(GroupedProblem&, const std::string&)) {
  return {.name = name,
          .help = help,
          .allowed = std::move(allowed),
          .set = [set](Problem& problem, const std::string& text) { set(task_of(problem).problem, text); }};
}

/// As many rows for each expert but the second, which has none.
std::vector<std::int64_t> even_counts(std::int64_t experts, std::int64_t rows) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(experts), rows);
  if (experts > 2) {
    counts[1] = 0;
  }
  return counts;
}

}  // namespace

Problem GroupedOperation::example() const {
  if (is_dense()) {
    return problem_of(
        dense_task({.m = 70, .n = 72, .k = 208, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16}));
  }
  GroupedTask task;
  task.problem = {.n = 72, .k = 208, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  if (is_dual()) {
    task.problem.activation = Activation{};
  }
  task.counts = {40, 0, 7, 21};
  return problem_of(completed(std::move(task)));
}

std::vector<ProblemOption> GroupedOperation::options() const {
  std::vector<ProblemOption> all{
      format("--a", "format of a; bf16 when left out", names_of(operand_formats),
             [](GroupedProblem& p, const std::string& text) { p.a = p.b = value_of(operand_formats, text); }),
      format("--b", "format of the weights; that of a when left out", names_of(operand_formats),
             [](GroupedProblem& p, const std::string& text) { p.b = value_of(operand_formats, text); }),
      format("--out", "format of c; bf16 when left out", names_of(unscaled_output_formats),
             [](GroupedProblem& p, const std::string& text) { p.out = value_of(unscaled_output_formats, text); }),
      option("--n", "outputs", true, [](GroupedTask& task, std::int64_t value) { task.problem.n = value; }),
      option("--k", "a multiple of 8, of 16 with NVFP4", true,
             [](GroupedTask& task, std::int64_t value) { task.problem.k = value; })};
  if (is_dense()) {
    all.insert(all.begin() + 3,
               option("--m", "rows", true, [](GroupedTask& task, std::int64_t value) { task.counts = {value}; }));
    return all;
  }
  const std::vector<ProblemOption> of_groups{
      {.name = "--layout",
       .help = "how the rows of the experts lie; packed when left out",
       .allowed = names_of(all_row_layouts),
       .set =
           [](Problem& problem, const std::string& text) {
             GroupedTask& task = task_of(problem);
             task.problem.layout = value_of(all_row_layouts, text);
             task.problem.tokens = task.problem.layout == RowLayout::gathered ? task.owned_rows() : 0;
             task.problem.rows = 0;
             task = completed(std::move(task));
           }},
      option("--experts", "experts, all with as many rows but the second, which has none", true,
             [](GroupedTask& task, std::int64_t value) { task.counts = even_counts(value, task.counts.front()); }),
      option("--rows", "rows of each expert that has any", true, [](GroupedTask& task, std::int64_t value) {
        task.counts = even_counts(std::ssize(task.counts), value);
        task.problem.rows = 0;
      })};
  all.insert(all.begin() + 3, of_groups.begin(), of_groups.end());
  if (is_dual()) {
    all.insert(all.begin() + 3, {.name = "--activation",
                                 .help = "what is applied to the gate; silu when left out",
                                 .allowed = names_of(all_activation_kinds),
                                 .set = [](Problem& problem, const std::string& text) {
                                   task_of(problem).problem.activation->kind = value_of(all_activation_kinds, text);
                                 }});
  }
  return all;
}

}  // namespace thresher::arena
