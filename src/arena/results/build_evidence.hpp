#pragma once
/// The sources and the tools of a user kernel's build.
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/confinement.hpp"

namespace thresher::arena {

/// A program or a library that took part.
struct ToolFile {
  std::string path;
  std::string sha256;
  bool is_script = false;
};

/// A file beside the kernel.
struct KeptFile {
  std::string path;  ///< relative to the kernel's folder
  std::string sha256;
  std::string text;
};

/// Evidence of the gate `compiles`.
struct BuildEvidence {
  std::string compiler;
  std::vector<ToolFile> tools;
  std::vector<std::string> options;
  KeptFile kernel;  ///< its text is the pitch's
  std::vector<KeptFile> files;
  std::size_t system_files = 0;     ///< headers of the compiler, the toolkit and the system
  std::string system_files_sha256;  ///< one hash of all of them
  runtime::Confined confined;       ///< the compiler's confinement
};

/// JSON objects.
[[nodiscard]] std::string to_json(const BuildEvidence& build);

}  // namespace thresher::arena
