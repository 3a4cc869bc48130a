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

/// The same of other environments that can be seen from here: PYTHONPATH, VIRTUAL_ENV, CONDA_PREFIX, HOME/.local, what
/// `./run` fetched into $XDG_CACHE_HOME/thresher, /usr/local and /usr.
std::vector<std::filesystem::path> nvidia_wheel_folders(std::string_view part,
                                                        const Environment& environment = process_environment);

/// What is in a folder, sorted, so that the same is found in the same order everywhere; nothing of one that is not
/// there.
std::vector<std::filesystem::path> children(const std::filesystem::path& directory);

/// The entries of a list such as PATH in the variable `name`.
std::vector<std::filesystem::path> path_list(const Environment& environment, const char* name);

}  // namespace thresher::runtime
