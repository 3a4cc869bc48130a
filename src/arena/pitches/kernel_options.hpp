#pragma once
/// The compiler options that a pitch may use: those for language and optimisation. Options that read or write a file,
/// start a program or load a plugin are rejected.
#include <filesystem>
#include <optional>
#include <string>

#include "arena/pitches/kernel.hpp"

namespace thresher::arena::user_kernels {

/// Why the option is rejected, as a clause after its name; empty when it is accepted.
[[nodiscard]] std::string option_obstacle(Language language, const std::string& option);

/// The folder that -I names, relative to the kernel's own; empty for other options.
[[nodiscard]] std::optional<std::filesystem::path> include_folder(const std::string& option);

}  // namespace thresher::arena::user_kernels
