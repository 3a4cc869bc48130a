// Problems of attention on a command line.
#include "arena/operation/command_line.hpp"
#include "arena/attention/operation.hpp"
#include "arena/attention/task.hpp"

namespace thresher::arena {
namespace {

constexpr std::array formats{Format::fp16, Format::bf16};

AttentionProblem& attention(Problem& problem) { return problem.as<AttentionTask>().problem; }

}  // namespace

Problem AttentionOperation::example() const { return problem_of(AttentionTask{{.format = Format::bf16}}); }

std::vector<ProblemOption> AttentionOperation::options() const {
  return {
      {.name = "--a",
       .help = "format of q, k, v and o; bf16 when left out",
       .allowed = names_of(formats),
       .set = [](Problem& problem, const std::string& text) { attention(problem).format = value_of(formats, text); }},
      {.name = "--head-dim",
       .help = "64 when left out",
       .allowed = {"64", "128"},
       .set = [](Problem& problem, const std::string& text) { attention(problem).head_dim = std::stoll(text); }},
      {.name = "--softcap",
       .help = "the kernel for a softcap",
       .is_flag = true,
       .set = [](Problem& problem, const std::string&) { attention(problem).softcap = 1.0F; }}};
}

}  // namespace thresher::arena
