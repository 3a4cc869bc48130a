// Alone in its file, because the tool that compiles the built-in cubins needs it and what it lists, and nothing else.
#include "kernels/two_pass/program.hpp"
#include "ops/cuda_programs.hpp"

namespace thresher::ops {

std::vector<kernels::DeviceProgram> default_programs() {
  return {kernels::two_pass::program(), kernels::reference::program()};
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
