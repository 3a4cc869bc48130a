// Problems of attention on a command line.
#include "arena/operation/command_line.hpp"
#include "arena/attention/operation.hpp"
#include "arena/attention/task.hpp"
#include "ops/validate_attention.hpp"

namespace thresher::arena {
namespace {

constexpr std::array formats{Format::fp16, Format::bf16};

template <std::size_t count>
std::vector<std::string> texts_of(const std::array<std::int64_t, count>& numbers) {
  std::vector<std::string> texts;
  for (const std::int64_t number : numbers) {
    texts.push_back(std::to_string(number));
  }
  return texts;
}

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
       .allowed = texts_of(ops::head_dims),
       .set = [](Problem& problem, const std::string& text) { attention(problem).head_dim = std::stoll(text); }},
      {.name = "--value-dim",
       .help = "of v and o; as --head-dim when left out",
       .allowed = texts_of(ops::value_dims),
       .set = [](Problem& problem, const std::string& text) { attention(problem).value_dim = std::stoll(text); }},
      {.name = "--fp8-keys",
       .help = "the kernel for keys and values in FP8",
       .is_flag = true,
       .set = [](Problem& problem, const std::string&) { attention(problem).kv_format = Format::fp8_e4m3; }},
      {.name = "--fp8-queries",
       .help = "the kernel for queries in FP8 too",
       .is_flag = true,
       .set =
           [](Problem& problem, const std::string&) {
             attention(problem).q_format = attention(problem).kv_format = Format::fp8_e4m3;
           }},
      {.name = "--page-size",
       .help = "keys of a page; none are in pages when left out",
       .set =
           [](Problem& problem, const std::string& text) {
             AttentionProblem& p = attention(problem);
             p.page_size = std::stoll(text);
             p.pages = 1;
             p.variable_length = true;
           }},
      {.name = "--softcap",
       .help = "the kernel for a softcap",
       .is_flag = true,
       .set = [](Problem& problem, const std::string&) { attention(problem).softcap = 1.0F; }}};
}

}  // namespace thresher::arena
