// Alone in its file, because the tool that compiles the built-in cubins needs it and what it lists, and nothing else.
#include "kernels/dual_gemm/program.hpp"
#include "kernels/nvfp4/choose.hpp"
#include "kernels/nvfp4/program.hpp"
#include "kernels/two_pass/program.hpp"
#include "ops/cuda_programs.hpp"

namespace thresher::ops {

std::vector<kernels::DeviceProgram> default_programs(const std::string& arch) {
  std::vector<kernels::DeviceProgram> programs{kernels::two_pass::program(), kernels::reference::program(),
                                               kernels::pause_program()};
  for (const kernels::dual_gemm::Config& config : kernels::dual_gemm::default_configs()) {
    programs.push_back(kernels::dual_gemm::program(config));
  }
  programs.push_back(kernels::nvfp4::preparation_program());
  for (const kernels::nvfp4::Config& config : kernels::nvfp4::default_configs()) {
    programs.push_back(kernels::nvfp4::program(config));
  }
  std::erase_if(programs, [&](const kernels::DeviceProgram& program) {
    return !program.only_arch.empty() && program.only_arch != arch;
  });
  return programs;
}

runtime::Program compiler_input(const kernels::DeviceProgram& program, const std::string& arch) {
  const std::span<const EmbeddedFile> headers = kernels::device_sources();
  return {.title = program.title,
          .text = program.text,
          .headers = {headers.begin(), headers.end()},
          .kernels = program.kernels,
          .options = program.options,
          .arch = arch};
}

}  // namespace thresher::ops
