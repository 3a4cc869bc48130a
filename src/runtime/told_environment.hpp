#pragma once
/// The environment of processes in which code from outside runs or is compiled: what they are told of the host's, which
/// holds tokens, names and paths that a kernel could repeat in its sentence.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace thresher::runtime {

enum class Told : std::uint8_t { kernel, compiler };

/// "NAME=value" of each name of this process's environment that `whom` may be told (docs/confinement.md lists them),
/// and of `own`, which the judge sets and which comes before what the host says.
[[nodiscard]] std::vector<std::string> environment_for(
    Told whom, std::initializer_list<std::pair<const char*, std::string>> own = {});

}  // namespace thresher::runtime
