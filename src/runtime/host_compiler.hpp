#pragma once
/// Code for this CPU, compiled at run time by the machine's C++ compiler into shared objects that are kept on disk.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/embedded_file.hpp"

namespace thresher::runtime {

/// The compiler: $CXX, else the first of c++, g++ and clang++ on PATH.
struct HostCompiler {
  std::filesystem::path path;  ///< empty when there is none
  std::string version;         ///< the first line of --version
  std::string problem;         ///< why it cannot be used, one sentence; empty when it can
};

/// Looked for on every call.
[[nodiscard]] HostCompiler find_host_compiler();

/// A C++20 translation unit with one C function to call.
struct HostProgram {
  std::string title;  ///< names it in messages
  std::string text;
  std::vector<EmbeddedFile> headers;  ///< all that it includes beside the standard library
  std::string symbol;                 ///< of the function
};

/// A library as the cache keeps it: the fingerprint of its bytes stands behind them, which the loader passes over.
[[nodiscard]] std::string host_cache_entry(std::string_view library);
/// Whether an entry is as it was made: loading a damaged one could end the process.
[[nodiscard]] bool is_whole_host_cache_entry(std::string_view entry);

/// The address of the program's function, whose library stays loaded. What the code calls and does not define must be
/// exported by this process. Compiled shared objects are kept in `cache` by source, options and compiler; an empty path
/// keeps nothing. Throws Error(unsupported) when there is no compiler, Error(compile) with its first complaint when it
/// refuses, Error(io) when nothing can be written.
[[nodiscard]] void* load_host_program(const HostProgram& program, const std::filesystem::path& cache);

}  // namespace thresher::runtime
