#pragma once
/// The library's version, as CMake's project() states it.
namespace thresher {

/// "major.minor.patch".
const char* version() noexcept;

}  // namespace thresher
