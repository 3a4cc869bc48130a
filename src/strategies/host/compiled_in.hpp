#pragma once
/// Which kernels the build compiled for the host.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "strategies/host/kernel.hpp"

namespace thresher::strategies {

struct CompiledIn {
  std::string expression;  ///< as DeviceProgram::kernels has it
  HostKernel kernel;
};

/// Calls `add` with each of the configurations as its template argument.
template <const auto& configs, class Add>
void for_each_config(const Add& add) {
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (add.template operator()<configs[index]>(), ...);
  }(std::make_index_sequence<configs.size()>());
}

/// Null when the build did not compile it.
[[nodiscard]] HostKernel find_compiled_in(const std::string& expression);

/// Adds one that a program of its own compiled in, a test for instance. Not while another thread looks for kernels.
void add_compiled_in(const CompiledIn& kernel);

}  // namespace thresher::strategies
