#pragma once
/// Which of the compiler's options a pitch may ask for: those that choose a language and how to optimise, and none that
/// reads or writes a file, starts a program or loads a plugin.
#include <filesystem>
#include <optional>
#include <string>

#include "arena/pitches/kernel.hpp"

namespace thresher::arena::user_kernels {

/// Why it may not be asked for, to stand after the option's name; empty when it may.
[[nodiscard]] std::string option_obstacle(Language language, const std::string& option);

/// The folder that -I names, from the kernel's own; nothing for other options.
[[nodiscard]] std::optional<std::filesystem::path> include_folder(const std::string& option);

}  // namespace thresher::arena::user_kernels
