// Alone in its file, because the tool that compiles the built-in cubins needs it and what it lists, and nothing else.
#include "ops/cuda_programs.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "strategies/dual_gemm/packed/choose.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "strategies/dual_gemm/two_pass/program.hpp"

namespace thresher::ops {
namespace {

/// Every strategy's own list.
void add_attention(std::vector<strategies::DeviceProgram>& programs) {
  for (const auto* strategy : strategies::attention::registry().of(DeviceKind::cuda)) {
    for (const auto& sample : strategy->built_in()) {
      const strategies::PlannedCall call = strategy->plan(sample.problem, sample.knobs, device_spec("H200"));
      for (const strategies::Step& step : call.steps) {
        if (const auto* launch = std::get_if<strategies::KernelLaunch>(&step)) {
          programs.push_back(launch->program);
        }
      }
    }
  }
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
