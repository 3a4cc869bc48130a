#pragma once
/// The environment of processes that run or compile user code. They get only part of the host's, which holds tokens,
/// names and paths that a kernel could repeat in its messages.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace thresher::runtime {

enum class Told : std::uint8_t { kernel, compiler };

/// "NAME=value" for each allowed variable of this process (docs/harness/confinement.md lists them), and those of `own`,
/// which the judge sets. `own` comes before the host's.
[[nodiscard]] std::vector<std::string> environment_for(
    Told whom, std::initializer_list<std::pair<const char*, std::string>> own = {});

}  // namespace thresher::runtime
