#pragma once
/// What built this binary, and from which sources.
#include <string>

namespace thresher::arena {

/// "GCC 12.2.0".
[[nodiscard]] std::string compiler();
/// JSON object: compiler, flags, build type, library versions.
[[nodiscard]] std::string toolchain_json();
/// Hash of every source file under src/ and include/ as it was built; the same for the same text.
[[nodiscard]] std::string source_hash();

}  // namespace thresher::arena
