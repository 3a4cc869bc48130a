#include "strategies/host/sources.hpp"

#include "embedded/host_source_files.hpp"

namespace thresher::strategies {

std::span<const EmbeddedFile> host_sources() { return embedded::host_source_files(); }

}  // namespace thresher::strategies
