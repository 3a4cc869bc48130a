// Alone in its file, because the tool that compiles the built-in cubins needs it and what it lists, and nothing else.
#include "ops/attention_launch.hpp"
#include "ops/cuda_programs.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "strategies/dual_gemm/packed/choose.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "strategies/dual_gemm/two_pass/program.hpp"

namespace thresher::ops {
namespace {

/// What every attention falls back to (`simple`), the default of long sequences, and the origin's problem.
void add_attention(std::vector<strategies::DeviceProgram>& programs) {
  for (const Format format : {Format::fp16, Format::bf16}) {
    for (const std::int64_t head_dim : {64, 128}) {
      const AttentionProblem problem{.queries = 4096, .keys = 4096, .head_dim = head_dim, .format = format};
      programs.push_back(attention_program(problem, choose_attention(problem, {.strategy = "simple"}, 0)));
      programs.push_back(attention_program(problem, choose_attention(problem, {.strategy = "pipelined"}, 0)));
    }
  }
  const AttentionProblem origin{.heads = 8, .kv_heads = 8, .queries = 512, .keys = 512, .head_dim = 64};
  programs.push_back(attention_program(origin, choose_attention(origin, {.strategy = "split"}, 0)));
}

}  // namespace

std::vector<strategies::DeviceProgram> default_programs(const std::string& arch) {
  std::vector<strategies::DeviceProgram> programs{strategies::dual_gemm::two_pass::program(),
                                                  strategies::reference::program(), strategies::pause_program()};
  for (const strategies::dual_gemm::fused::Config& config : strategies::dual_gemm::fused::default_configs()) {
    programs.push_back(strategies::dual_gemm::fused::program(config));
  }
  programs.push_back(strategies::dual_gemm::packed::preparation_program());
  for (const strategies::dual_gemm::packed::Config& config : strategies::dual_gemm::packed::default_configs()) {
    programs.push_back(strategies::dual_gemm::packed::program(config));
  }
  add_attention(programs);
  std::erase_if(programs, [&](const strategies::DeviceProgram& program) {
    return program.only_arch && name(*program.only_arch) != arch;
  });
  return programs;
}

runtime::Program compiler_input(const strategies::DeviceProgram& program, const std::string& arch) {
  const std::span<const EmbeddedFile> headers = strategies::device_sources();
  return {.title = program.title,
          .text = program.text,
          .headers = {headers.begin(), headers.end()},
          .kernels = program.kernels,
          .options = program.options,
          .arch = arch};
}

}  // namespace thresher::ops
