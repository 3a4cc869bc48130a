#pragma once
/// Code for this CPU: the machine's C++ compiler makes shared objects at run time, which are kept on disk.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/embedded_file.hpp"

namespace thresher::runtime {

/// The compiler: $CXX, otherwise the first of c++, g++ and clang++ on PATH.
struct HostCompiler {
  std::filesystem::path path;  ///< empty when there is none
  std::string version;         ///< the first line of --version
  std::string problem;         ///< why it cannot be used, one sentence; empty when it can
};

/// Searches on every call.
[[nodiscard]] HostCompiler find_host_compiler();

/// A C++20 translation unit with one C function to call.
struct HostProgram {
  std::string title;  ///< its name in messages
  std::string text;
  std::vector<EmbeddedFile> headers;  ///< all its includes except the standard library
  std::string symbol;                 ///< of the function
};

/// A library as a cache entry: the fingerprint of its bytes follows them; the loader ignores it.
[[nodiscard]] std::string host_cache_entry(std::string_view library);
/// Whether an entry is undamaged: loading a damaged one could end the process.
[[nodiscard]] bool is_whole_host_cache_entry(std::string_view entry);

/// The address of the program's function, whose library stays loaded. This process must export undefined functions that
/// the code calls. Compiled shared objects are kept in `cache` by source, options and compiler; an empty path keeps
/// nothing. Throws Error(unsupported) when there is no compiler, Error(compile) with its first error when it fails,
/// Error(io) when nothing can be written.
[[nodiscard]] void* load_host_program(const HostProgram& program, const std::filesystem::path& cache);

}  // namespace thresher::runtime
