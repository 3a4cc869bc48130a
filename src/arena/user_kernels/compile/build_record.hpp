#pragma once
/// The sources and tools of a user kernel's build: everything that the compiler read, so that the ledger keeps what
/// ran.
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "arena/results/build_evidence.hpp"
#include "runtime/confinement.hpp"

namespace thresher::arena::user_kernels {

/// A file beside the kernel.
struct SourceFile {
  std::string path;  ///< relative to the kernel's folder
  std::string text;
};

struct BuildRecord {
  std::string compiler;  ///< "g++ (Debian 12.2.0-14+deb12u1) 12.2.0"
  std::vector<ToolFile> tools;
  std::vector<std::string> options;
  SourceFile kernel;
  std::vector<SourceFile> files;                    ///< files that the kernel includes, sorted by path
  std::vector<std::filesystem::path> system_files;  ///< the compiler's, the toolkit's and the system's headers
  runtime::Confined confined;                       ///< the compiler's confinement
};

/// "g++ … by the script /home/me/cxx", for a gate's sentence.
[[nodiscard]] std::string by_whom(const BuildRecord& record);

/// For the ledger: each file with its SHA-256, the kernel's own with their text, the system's under one hash.
[[nodiscard]] BuildEvidence evidence_of(const BuildRecord& record);

/// The tool at `path`. Throws Error(io) when it cannot be read.
[[nodiscard]] ToolFile tool_file(const std::filesystem::path& path);

/// Whether `path`, with its links resolved, lies in the folder or below.
[[nodiscard]] bool lies_below(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Copies the kernel's own included files to the same relative places in the build folder. Throws Error(compile) for a
/// file that is no text, and for more text than the ledger keeps.
class IncludedFiles {
 public:
  IncludedFiles(std::filesystem::path from, std::filesystem::path to) : from_(std::move(from)), to_(std::move(to)) {}
  /// `file` lies below the source folder. Returns its text; a file that was added before is not copied again.
  const std::string& add(const std::filesystem::path& file);
  [[nodiscard]] std::vector<SourceFile> sorted() &&;

 private:
  std::filesystem::path from_;
  std::filesystem::path to_;
  std::vector<SourceFile> files_;
  std::size_t bytes_ = 0;
};

/// A compiler's message, which the kernel may control, made fit for a sentence: one line of a few hundred printable
/// characters.
[[nodiscard]] std::string in_a_sentence(std::string_view said);

}  // namespace thresher::arena::user_kernels
