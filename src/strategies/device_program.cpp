#include "strategies/device_program.hpp"

#include "embedded/device_source_files.hpp"

namespace thresher::strategies {

std::span<const EmbeddedFile> device_sources() { return embedded::device_source_files(); }

}  // namespace thresher::strategies
