#pragma once
/// The kernel that appends as a function of the host.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::append {

/// Every format, page format and pairing.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::append
