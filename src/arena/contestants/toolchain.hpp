#pragma once
/// The compiler and the sources of this binary.
#include <string>

#include "arena/results/record.hpp"

namespace thresher::arena {

/// "GCC 12.2.0".
[[nodiscard]] std::string compiler();
[[nodiscard]] Toolchain toolchain();
/// Hash of every source file under src/ and include/ as it was built; the same for the same text.
[[nodiscard]] std::string source_hash();

}  // namespace thresher::arena
