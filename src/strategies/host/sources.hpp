#pragma once
/// The sources that a kernel compiled for the CPU at run time includes.
#include <span>

#include "core/embedded_file.hpp"

namespace thresher::strategies {

/// Every header of the machine vocabulary with the emulator's body, the pipeline and the kernels.
std::span<const EmbeddedFile> host_sources();

}  // namespace thresher::strategies
