#pragma once
/// Device code as text, and its requested kernels. This header does not know the compiler.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/arch.hpp"
#include "core/embedded_file.hpp"

namespace thresher::strategies {

struct DeviceProgram {
  std::string title;                 ///< its name in messages
  std::string text;                  ///< the translation unit; includes only device_sources()
  std::vector<std::string> kernels;  ///< name expressions of the kernels to compile
  std::vector<std::string> options;  ///< for the compiler, in addition to its standard ones
  std::optional<Arch> only_arch{};   ///< the architecture or family whose instructions it needs; empty for any
};

/// Every header of the machine vocabulary, the pipeline and the kernels that device code may include.
std::span<const EmbeddedFile> device_sources();

/// Those of device_sources() that `text` includes, directly or not, in their order.
std::vector<EmbeddedFile> included_sources(std::string_view text);

}  // namespace thresher::strategies
