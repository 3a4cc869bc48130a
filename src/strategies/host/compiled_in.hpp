#pragma once
/// Which kernels the build compiled for the host.
#include <string>
#include <vector>

#include "strategies/host/kernel.hpp"

namespace thresher::strategies {

struct CompiledIn {
  std::string expression;  ///< as DeviceProgram::kernels has it
  HostKernel kernel;
};

/// Null when the build did not compile it.
[[nodiscard]] HostKernel find_compiled_in(const std::string& expression);

/// Adds one that a program of its own compiled in, a test for instance. Not while another thread looks for kernels.
void add_compiled_in(const CompiledIn& kernel);

}  // namespace thresher::strategies
