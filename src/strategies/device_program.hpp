#pragma once
/// Device code as text, and the kernels wanted of it. What compiles it is not known here.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/arch.hpp"
#include "core/embedded_file.hpp"

namespace thresher::strategies {

struct DeviceProgram {
  std::string title;                 ///< names it in messages
  std::string text;                  ///< the translation unit; includes device_sources() only
  std::vector<std::string> kernels;  ///< name expressions of the kernels to compile
  std::vector<std::string> options;  ///< for the compiler, beyond its standard ones
  std::optional<Arch> only_arch{};   ///< whose instructions it needs, one architecture or a family; empty for any
};

/// Every header of the machine vocabulary, the pipeline and the kernels that device code may include.
std::span<const EmbeddedFile> device_sources();

}  // namespace thresher::strategies
