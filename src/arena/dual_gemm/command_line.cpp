// Problems of the dual GEMM on a command line.
#include "arena/operation/command_line.hpp"
#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/task.hpp"

namespace thresher::arena {
namespace {

ProblemOption extent(const char* option, const char* help, std::int64_t DualGemmProblem::* member) {
  return {.name = option, .help = help, .is_extent = true, .set = [member](Problem& problem, const std::string& text) {
            dual_gemm(problem).*member = std::stoll(text);
          }};
}

}  // namespace

Problem DualGemmOperation::example() const {
  return problem_of(
      DualGemmProblem{.m = 200, .n = 72, .k = 208, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
}

std::vector<ProblemOption> DualGemmOperation::options() const {
  return {{.name = "--a",
           .help = "format of a; bf16 when left out",
           .allowed = names_of(operand_formats),
           .set =
               [](Problem& problem, const std::string& text) {
                 dual_gemm(problem).a = dual_gemm(problem).b = value_of(operand_formats, text);
               }},
          {.name = "--b",
           .help = "format of b1 and b2; that of a when left out",
           .allowed = names_of(operand_formats),
           .set = [](Problem& problem,
                     const std::string& text) { dual_gemm(problem).b = value_of(operand_formats, text); }},
          {.name = "--out",
           .help = "format of c; bf16 when left out",
           .allowed = names_of(unscaled_output_formats),
           .set = [](Problem& problem,
                     const std::string& text) { dual_gemm(problem).out = value_of(unscaled_output_formats, text); }},
          {.name = "--activation",
           .help = "what is applied to the gate; silu when left out",
           .allowed = names_of(all_activation_kinds),
           .set =
               [](Problem& problem, const std::string& text) {
                 dual_gemm(problem).activation.kind = value_of(all_activation_kinds, text);
               }},
          extent("--m", "tokens", &DualGemmProblem::m),
          extent("--n", "outputs, a multiple of 8", &DualGemmProblem::n),
          extent("--k", "a multiple of 16", &DualGemmProblem::k)};
}

}  // namespace thresher::arena
