#pragma once
/// NVIDIA's `nvidia-*` packages in Python environments: site-packages/nvidia/NAME/{lib,bin,include}.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

namespace thresher::runtime {

/// The value of an environment variable, null when it is not set.
using Environment = std::function<const char*(const char*)>;
inline const char* process_environment(const char* name) { return std::getenv(name); }

/// The existing folders nvidia/NAME/`part` of the Python environment that this library is installed in.
std::vector<std::filesystem::path> own_wheel_folders(std::string_view part);

/// The same for other environments that are reachable from here: PYTHONPATH, VIRTUAL_ENV, CONDA_PREFIX, HOME/.local,
/// the downloads of `./run` in $XDG_CACHE_HOME/thresher, /usr/local and /usr.
std::vector<std::filesystem::path> nvidia_wheel_folders(std::string_view part,
                                                        const Environment& environment = process_environment);

/// The entries of a folder, sorted, so that the search order is the same everywhere; empty for a missing folder.
std::vector<std::filesystem::path> children(const std::filesystem::path& directory);

/// The entries of a list such as PATH in the variable `name`.
std::vector<std::filesystem::path> path_list(const Environment& environment, const char* name);

}  // namespace thresher::runtime
